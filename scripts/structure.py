"""Write docs/structure.md from the module docstrings, so that it cannot rot.

`python scripts/structure.py` writes the file, `--check` only compares and exits 1 where they differ.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGES = (
    "inputs",
    "formats",
    "workload",
    "acceptance",
    "cost",
    "engine",
    "analysis",
    "answers",
    "report",
    "cli",
)
HEADER = """\
# Structure

Written by `python scripts/structure.py` from the docstrings of the modules: change those, not this page.

Imports go one way: {order}. A module imports only from its own package and from packages to its left;
`tests/structure/` checks it. simpy is imported in `sim/engine/loop.py` alone, click in `sim/cli/`, rich in `sim/cli/`
and `sim/report/terminal.py`.

| folder | what it holds |
|---|---|
| `sim/` | the library and the command line, one line a module below |
| `profiler/` | `specsim profile`: measures calibrations; torch is imported here alone |
| `calibrations/` | what a step costs, each file with its provenance; shipped in the wheel as `sim/data/calibrations/` |
| `scenarios/` | short questions to run; shipped in the wheel as `sim/data/scenarios/` |
| `tests/` | one folder a package; `structure/` checks the rules of this page, `docs/` the commands in the docs |
| `benchmarks/` | speed of the loop, agreement with recorded engines |
| `scripts/` | what a contributor runs by hand |
| `docs/` | this page, `method.md` (what is modelled and what is not), `adr/` (decisions) |
"""


def summary(path: Path) -> str:
    """First line of a module's docstring. Raises SystemExit where it is missing or is not a whole sentence."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    line = docstring.partition("\n")[0].strip()
    if not line.endswith("."):
        raise SystemExit(f"{path}:1:1: docstring: its first line is {line!r}, it must be one sentence, end it with '.'")
    return line


def render(root: Path) -> str:
    """Text of the page for the tree below `root`."""
    sim = root / "sim"
    unknown = sorted({path.parent.name for path in sim.glob("*/*.py")} - set(PACKAGES))
    if unknown:
        raise SystemExit(f"sim/{unknown[0]}: not a package of the layout, which is {', '.join(PACKAGES)}")
    lines = [HEADER.format(order=" → ".join(PACKAGES)), "## sim", ""]
    lines += [_line(root, path) for path in sorted(sim.glob("*.py"))]
    for package in PACKAGES:
        init = sim / package / "__init__.py"
        if init.exists():
            lines += ["", f"## sim/{package}", "", summary(init), ""]
            lines += [_line(root, path) for path in sorted((sim / package).rglob("*.py")) if path != init]
    init = root / "profiler" / "__init__.py"
    if init.exists():
        lines += ["", "## profiler", "", summary(init), ""]
        lines += [_line(root, path) for path in sorted(init.parent.glob("*.py")) if path != init]
    return "\n".join(lines).rstrip("\n") + "\n"


def _line(root: Path, path: Path) -> str:
    return f"- `{path.relative_to(root).as_posix()}`: {summary(path)}"


def main(arguments: list[str]) -> int:
    """Write or check the page; returns the exit code."""
    root = Path(__file__).resolve().parents[1]
    page = root / "docs" / "structure.md"
    text = render(root)
    if "--check" not in arguments:
        page.write_text(text, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        print("docs/structure.md is out of date: run python scripts/structure.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
