"""Writes the page of a result file: read, told apart by its schema, made, and put in its place whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...inputs.errors import InputError, Problem
from ...inputs.load import RESULT_SCHEMA
from .capacity_page import capacity_page
from .page import Page, page_html
from .plotly_script import plotly_script
from .result_file import read_result, refuse, result_path
from .run_page import run_page
from .sweep_page import sweep_page
from .tune_page import tune_page

PAGE_NAME = "report.html"
MAKERS: dict[str, Callable[[dict[str, Any], Path], Page]] = {
    RESULT_SCHEMA: run_page,
    "specsim-sweep/1": sweep_page,
    "specsim-tune/1": tune_page,
    "specsim-capacity/1": capacity_page,
}


def write_page(result: Path, out: Path | None = None) -> Path:
    """Make the page of a result and return its path. result: the file, or the folder that `--out` filled.

    out: default report.html beside the result. Raises InputError, and then leaves nothing behind.
    """
    path = result_path(result)
    target = path.parent / PAGE_NAME if out is None else out
    _check_target(target, path)
    document = read_result(path, tuple(MAKERS))
    plotly = plotly_script()
    try:
        text = page_html(MAKERS[document["schema"]](document, path.parent), plotly)
    except InputError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        # Results are written by us and have no schema of their own to check them by: a part that is not there or is
        # of another kind shows here.
        refuse(path, f"has a part that is missing or is not what it should be ({type(error).__name__}: {error})")
    _write(target, text)
    return target


def _check_target(target: Path, result: Path) -> None:
    if target.is_dir():
        raise InputError([_problem(target, "is a directory", "name the file in it")])
    if target.exists() and result.exists() and os.path.samefile(target, result):
        raise InputError([_problem(target, "is the result itself", "give another name")])


def _write(target: Path, text: str) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, target)
    except (OSError, ValueError) as error:
        what = f"cannot be written ({getattr(error, 'strerror', None) or error})"
        raise InputError([_problem(target, what, "give another path")]) from None
    finally:
        temporary.unlink(missing_ok=True)


def _problem(target: Path, what: str, remedy: str) -> Problem:
    return Problem(str(target), 1, 1, "--out", what, "--out is a file that can be written", remedy)
