"""Files and functions stay short, and each file is named after its concept."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("sim", "profiler", "scripts", "benchmarks", "tests")
FILE_LINES, FILE_LINES_WARN, FUNCTION_LINES = 400, 250, 60
EMPTY_NAMES = {"base.py", "common.py", "helpers.py", "misc.py", "tools.py", "util.py", "utils.py"}


def files(*folders: str) -> list[Path]:
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert found
    return found


def long_functions(source: str, limit: int) -> list[tuple[str, int, int]]:
    """Name, line and length of each function that is longer than `limit` lines, its docstring included."""
    return [
        (node.name, node.lineno, length)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > limit
    ]


@pytest.mark.filterwarnings("default")
def test_files_are_short():
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in files(*FOLDERS)}
    for name, lines in lengths.items():
        if FILE_LINES_WARN < lines <= FILE_LINES and name.startswith("sim/"):
            warnings.warn(f"{name} has {lines} lines: is it still one concept?", stacklevel=1)
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


def test_functions_are_short():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name} has {length} lines, at most {FUNCTION_LINES}: split it"
        for path in files("sim", "profiler", "scripts")
        for name, line, length in long_functions(path.read_text("utf-8"), FUNCTION_LINES)
    ]
    assert not found, "\n".join(found)


def test_file_names_say_what_is_inside():
    assert [path for path in files(*FOLDERS) if path.name in EMPTY_NAMES] == []


def test_a_long_function_is_found():
    source = "class A:\n    async def long(self):\n" + "        pass\n" * 3 + "\ndef short():\n    pass\n"
    assert long_functions(source, 3) == [("long", 2, 4)]
    assert long_functions(source, 4) == []
