"""The docs hold: their commands run and their links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))
PAGES_WITH_COMMANDS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
SHELLS = {"", "bash", "console", "sh", "shell", "zsh"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name(page):
    return page.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    """A fenced block: the line of its fence (from 1), its language, its text, and whether it is marked as not run."""

    line: int
    language: str
    text: str
    not_run: bool


def split(text: str) -> tuple[list[Block], list[tuple[int, str]]]:
    """The fenced blocks, and the numbered lines outside of them."""
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    opened: tuple[int, str, bool] | None = None
    content: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("```"):
            if opened:
                content.append(line)
            else:
                prose.append((number, line))
        elif opened:
            blocks.append(Block(opened[0], opened[1], "\n".join(content), opened[2]))
            opened, content = None, []
        else:
            above = next((words.strip() for words in reversed(lines[: number - 1]) if words.strip()), "")
            opened = (number, line.strip().removeprefix("```"), NOT_RUN.fullmatch(above) is not None)
    if opened:
        raise ValueError(f"line {opened[0]}: a fence is never closed")
    return blocks, prose


def starts_with_specsim(block: Block) -> bool:
    """Whether the block's first line that is no comment calls the command."""
    lines = [line.strip().removeprefix("$ ") for line in block.text.splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return re.match(r"specsim\b(?!-)", first) is not None


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as Git hosts derive them."""
    headings = [line.lstrip("#").strip() for _, line in split(text)[1] if re.match(r"#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Relative links of a page whose file or heading does not exist, as `line: target`."""
    text = page.read_text("utf-8")
    found = []
    for number, line in split(text)[1]:
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page
            known = file.exists() and (not anchor or anchor in anchors(file.read_text("utf-8")))
            found += [] if known else [f"{number}: {target}"]
    return found


@pytest.fixture
def shell(tmp_path):
    """Runs a block in a folder that holds the shipped files, with `specsim` being this checkout's command."""
    folder, programs = tmp_path / "folder", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    for shipped in ("scenarios", "calibrations"):
        shutil.copytree(ROOT / shipped, folder / shipped)
    script = programs / "specsim"
    run_main = "import sys; sys.argv[0] = 'specsim'; from sim.cli.main import main; sys.exit(main())"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{run_main}" "$@"\n', "utf-8")
    script.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}

    def run(block):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=name)
def test_commands_run(page, shell):
    """The blocks of a page run in its order in one folder, so that a later one may read what an earlier one wrote."""
    for block in split(page.read_text("utf-8"))[0]:
        if block.not_run or block.language not in SHELLS or not starts_with_specsim(block):
            continue
        place = f"{name(page)}:{block.line}"
        assert block.language == "bash", f"{place}: a block of commands is marked ```bash, not ```{block.language}"
        done = shell(block)
        assert done.returncode == 0, f"{place}: exit {done.returncode}\n{block.text}\n{done.stderr}"


def test_a_failing_command_is_seen(shell):
    blocks = split("```bash\n# comment\nspecsim no-such-command\n```\n```bash\nspecsim --help\n```\n")[0]
    assert [starts_with_specsim(block) for block in blocks] == [True, True]
    assert [shell(block).returncode == 0 for block in blocks] == [False, True]


def test_readme_begins_with_the_two_commands_that_ci_runs():
    blocks, _ = split((ROOT / "README.md").read_text("utf-8"))
    quickstart, tests = [block.text for block in blocks if block.language == "bash"][:2]
    assert "pip install" in quickstart
    assert "specsim run" in quickstart
    assert "pip install" in tests
    assert "[test]" in tests
    assert "pytest" in tests


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page):
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_names_the_distribution_of_another_project(page):
    assert not re.search(r"pip install (-\S+ )*specsim(?!-llm)\b", page.read_text("utf-8"))


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "a.md"
    text = "# One two\n[a](b.md) [a](#one-two) [a](#three) [a](a.md#one-two) [a](https://x.org)\n```\n[a](c.md)\n```\n"
    page.write_text(text, "utf-8")
    assert broken_links(page) == ["2: b.md", "2: #three"]


def test_blocks_are_read_with_their_marks():
    block = "```bash\nspecsim run\n```\n"
    blocks, prose = split(f"x\n<!-- not run: needs a GPU -->\n\n{block}{block}<!-- not run: -->\n{block}")
    assert [(block.line, block.not_run) for block in blocks] == [(4, True), (7, False), (11, False)]
    assert [number for number, _ in prose] == [1, 2, 3, 10]
    with pytest.raises(ValueError, match="never closed"):
        split("```bash\nspecsim run\n")
