"""The profiler measures with torch, numpy and the standard library alone; only its fit knows the simulator."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROFILER = ROOT / "profiler"
WITH_SIM = {"calibration.py", "check.py", "fit.py", "folds.py", "pricing.py", "text.py"}
WITHOUT_TORCH = {
    "builtin_models.py",
    "calibration.py",
    "check.py",
    "device.py",
    "dims.py",
    "errors.py",
    "fit.py",
    "folds.py",
    "grids.py",
    "measured.py",
    "plan.py",
    "point.py",
    "presets.py",
    "pricing.py",
    "runner.py",
    "setup.py",
    "store.py",
    "synthetic.py",
    "text.py",
    "timing.py",
}
ALLOWED = {"torch", "numpy", "pynvml", "flashinfer"}


def outside(path: Path) -> set[str]:
    """Top-level names of everything outside the package and the standard library that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names - set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", sorted(PROFILER.glob("*.py")), ids=lambda path: path.name)
def test_a_module_imports_what_it_may(path):
    allowed = ALLOWED | ({"sim"} if path.name in WITH_SIM else set())
    if path.name in WITHOUT_TORCH:
        allowed -= {"torch"}
    assert outside(path) - allowed == set()


def test_measuring_needs_no_package_of_the_simulator(tmp_path):
    blocked = ["pydantic", "click", "simpy", "yaml", "rich", "scipy", "sim", "torch"]
    code = (
        f"import sys\nfor name in {blocked}: sys.modules[name] = None\n"
        "from profiler.session import make_setup, run_folder\nfrom pathlib import Path\n"
        f"print(run_folder(make_setup('smoke', device='synthetic'), Path({str(tmp_path)!r})))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "points.jsonl").exists()
