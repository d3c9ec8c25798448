"""Imports go one way, and each outside package stays where it belongs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

SIM = Path(__file__).resolve().parents[2] / "sim"
ORDER = ("inputs", "formats", "workload", "acceptance", "cost", "engine", "analysis", "answers", "report", "cli")

# Where an outside package may be imported, as files or folders below sim/; None: anywhere.
OUTSIDE = {
    "numpy": None,
    "scipy": None,
    "pydantic": None,
    "pydantic_core": None,
    "yaml": None,
    "simpy": ("engine/loop.py", "engine/traffic.py"),
    "click": ("cli/",),
    "rich": ("cli/", "report/terminal.py"),
    "plotly": ("report/", "cli/"),
    "matplotlib": ("report/", "cli/"),
    "pyarrow": ("formats/", "report/", "cli/"),
    "distributed": ("answers/", "cli/"),
    "profiler": ("cli/profile.py",),
}
INSIDE_FUNCTIONS_ONLY = {"scipy", "plotly", "matplotlib", "pyarrow", "distributed"}


def imports(node: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import statement below `node`, and whether a function holds it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, in_function
        else:
            inner = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(child, inner)


def violations(module: str, source: str) -> list[str]:
    """What a module, named by its path below sim/, breaks."""
    tree = ast.parse(source)
    found = []
    for node, in_function in imports(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            problems = [inside_problem(module, target) for target in inside_targets(module, node)]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            problems = [outside_problem(module, name.partition(".")[0], in_function) for name in names]
        found += [f"sim/{module}:{node.lineno}: {problem}" for problem in problems if problem]
    if module.startswith(tuple(f"{package}/" for package in ORDER[:-1])):
        found += [f"sim/{module}:{line}: an import by name hides what it imports" for line in hidden(tree)]
    return found


def inside_targets(module: str, node: ast.ImportFrom) -> list[tuple[str, ...]]:
    """Paths below sim/ that a relative import names."""
    here = PurePosixPath(module).parts[:-1]
    up = node.level - 1
    if up > len(here):
        return [("..",)]
    base = here[: len(here) - up] + (tuple(node.module.split(".")) if node.module else ())
    return [base] if base else [(alias.name,) for alias in node.names]


def inside_problem(module: str, target: tuple[str, ...]) -> str | None:
    own = PurePosixPath(module).parts[:-1]
    if not own or target == ("__version__",):  # the root gathers public names from everywhere
        return None
    if target[0] not in ORDER:
        return f"imports {'.'.join(target)}, which is no package of the layout"
    if ORDER.index(target[0]) > ORDER.index(own[0]):
        return f"{own[0]} imports {target[0]}, which stands to its right"
    return None


def outside_problem(module: str, name: str, in_function: bool) -> str | None:
    if name == "sim":
        return "imports inside the package are relative"
    if name in sys.stdlib_module_names:
        return None
    if name not in OUTSIDE:
        return f"{name} is no dependency of sim"
    places = OUTSIDE[name]
    if places and not any(module == place or (place.endswith("/") and module.startswith(place)) for place in places):
        return f"{name} is imported only in {', '.join(places)}"
    if name in INSIDE_FUNCTIONS_ONLY and not in_function:
        return f"{name} takes long to load: import it inside the function that needs it"
    return None


def hidden(tree: ast.AST) -> list[int]:
    """Lines that call `import_module` or `__import__`."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if ast.unparse(call.func).endswith(("import_module", "__import__"))]


def test_the_tree_keeps_the_rules():
    files = sorted(SIM.rglob("*.py"))
    assert len(files) > len(ORDER)
    found = [v for path in files for v in violations(path.relative_to(SIM).as_posix(), path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_only_the_packages_of_the_layout_exist():
    assert {path.parent.name for path in SIM.glob("*/*.py")} == set(ORDER)


@pytest.mark.parametrize(
    ("module", "source", "says"),
    [
        ("cost/a.py", "from ..engine.records import Steps", "to its right"),
        ("cost/a.py", "from ..engine import records", "to its right"),
        ("cost/a.py", "from .. import engine", "to its right"),
        ("cost/deep/a.py", "from ...engine import records", "to its right"),
        ("cost/a.py", "if True:\n    from ..cli import main", "to its right"),
        ("cost/a.py", "def f():\n    from ..cli import main", "to its right"),
        ("cost/a.py", "from ... import profiler", "no package of the layout"),
        ("cost/a.py", "from ..profiler import fit", "no package of the layout"),
        ("cost/a.py", "from sim.inputs import errors", "are relative"),
        ("cost/a.py", "import sim.inputs.errors", "are relative"),
        ("cost/a.py", "import torch", "no dependency"),
        ("cli/a.py", "def f():\n    import torch.cuda", "no dependency"),
        ("cost/a.py", "from profiler.fit import fit_costs", "only in cli/profile.py"),
        ("cost/a.py", "import pandas as pd", "no dependency"),
        ("engine/core.py", "import simpy", "only in engine/loop.py"),
        ("engine/styles/loop.py", "from simpy import Environment", "only in engine/loop.py"),
        ("report/a.py", "from click import echo", "only in cli/"),
        ("report/html.py", "from rich.table import Table", "only in cli/, report/terminal.py"),
        ("analysis/a.py", "import scipy.stats", "inside the function"),
        ("analysis/a.py", "try:\n    from scipy import stats\nexcept ImportError:\n    raise", "inside the function"),
        ("analysis/a.py", "class A:\n    import scipy", "inside the function"),
        ("report/a.py", "import matplotlib.pyplot", "inside the function"),
        ("__init__.py", "import click", "only in cli/"),
        ("cost/a.py", "import importlib\nimportlib.import_module('torch')", "import by name"),
        ("cost/a.py", "__import__('torch')", "import by name"),
    ],
)
def test_a_violation_is_found(module, source, says):
    (found,) = violations(module, source)
    assert says in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cost/a.py", "from ..inputs.errors import Problem"),
        ("cost/a.py", "from . import memory"),
        ("cost/a.py", "from .memory import blocks"),
        ("cost/a.py", "from .. import inputs"),
        ("report/a.py", "from .. import __version__"),
        ("engine/loop.py", "import simpy"),
        ("cli/main.py", "import click\nfrom ..inputs.errors import SpecsimError"),
        ("cli/main.py", "import importlib\nimportlib.import_module('sim.cli.run')"),
        ("analysis/a.py", "def f():\n    from scipy import stats\n    return stats"),
        ("analysis/a.py", "import json\nimport numpy as np"),
        ("__init__.py", "from .inputs.errors import SpecsimError"),
    ],
)
def test_what_is_allowed_passes(module, source):
    assert violations(module, source) == []
