"""Make the engine's random worlds and the hand-made records importable for the tests of this folder."""

import sys
from pathlib import Path

for folder in ("engine", "analysis"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))
