"""The command answers at once because what takes long to load is imported only by the command that needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"numpy", "scipy", "simpy", "pydantic", "torch", "matplotlib", "plotly", "pyarrow", "distributed", "profiler"}
PRINT_LOADED = "import json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
HELP = """
import sys
from sim.cli.main import main
sys.argv = ["specsim", "--help"]
try:
    code = main()
except SystemExit as exit:
    code = exit.code
assert not code, code
"""


def loaded(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after `code`."""
    command = [sys.executable, "-c", f"{code}\n{PRINT_LOADED}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("code", ["import sim", "import sim.cli.main", HELP], ids=["package", "command", "help"])
def test_start_up_loads_nothing_heavy(code):
    modules = loaded(code)
    assert "sim" in modules
    assert modules & HEAVY == set()


def test_a_heavy_import_is_seen():
    assert loaded("import numpy") & HEAVY == {"numpy"}
