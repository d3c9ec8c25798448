"""docs/structure.md lists every module, in the words of its docstring."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def render():
    return runpy.run_path(str(ROOT / "scripts" / "structure.py"))["render"]


def test_structure_page_lists_every_module(render):
    page = (ROOT / "docs" / "structure.md").read_text("utf-8")
    assert page == render(ROOT), "run python scripts/structure.py"
    listed = re.findall(r"^- `(sim/[^`]+)`: ", page, re.MULTILINE)
    packages = [f"sim/{package}/__init__.py" for package in re.findall(r"^## sim/(\w+)$", page, re.MULTILINE)]
    assert sorted(listed + packages) == sorted(
        path.relative_to(ROOT).as_posix() for path in (ROOT / "sim").rglob("*.py")
    )


@pytest.mark.parametrize("docstring", ["", '"""No full stop"""', '"""Ends\nlater."""'])
def test_structure_page_needs_a_sentence_from_each_module(render, tmp_path, docstring):
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "a.py").write_text('"""Does a thing."""\n', "utf-8")
    assert "- `sim/a.py`: Does a thing.\n" in render(tmp_path)
    (tmp_path / "sim" / "b.py").write_text(f"{docstring}\n", "utf-8")
    with pytest.raises(SystemExit, match=r"b\.py"):
        render(tmp_path)
