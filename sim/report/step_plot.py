"""Step time against rows with its stairs: as text, or as a picture where matplotlib is installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..inputs.errors import InputError, Problem
from .number_text import number_text

WIDTH, HEIGHT = 64, 12
COMMAND = "specsim calibrate show"


def step_plot_lines(curve: dict[str, Any]) -> list[str]:
    """The curve as lines: rows by ratio from left to right, milliseconds from 0 upwards, `^` at captured sizes."""
    rows, ms = curve["rows"], curve["ms"]
    top = max(ms)
    columns = [_at(rows, ms, _row_of(column, rows[-1])) for column in range(WIDTH)]
    heights = [max(1, round(HEIGHT * value / top)) for value in columns]
    label = number_text(top)
    margin = len(label)
    lines = []
    for level in range(HEIGHT, 0, -1):
        points = "".join("*" if height == level else " " for height in heights)
        lines.append(f"{label if level == HEIGHT else '':>{margin}} |{points}")
    marks = {_column_of(size, rows[-1]) for size in curve["capture_sizes"]}
    lines.append("0".rjust(margin) + " +" + "".join("^" if column in marks else "-" for column in range(WIDTH)))
    lines.append(" " * margin + "  1" + f"{rows[-1]} rows".rjust(WIDTH - 1))
    return [line.rstrip() for line in lines]


def write_step_plot(document: dict[str, Any], path: Path) -> None:
    """The same as a picture; its format follows the ending. Raises InputError, also where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        rule = "pictures are drawn by matplotlib"
        raise InputError([_problem("matplotlib is not installed", rule, "install it, or leave --plot out")]) from None
    curve = document["curve"]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.step(curve["rows"], curve["ms"], where="post", linewidth=1)
    for size in curve["capture_sizes"]:
        axes.axvline(size, linewidth=0.3, color="grey")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("rows (requests without drafts)")
    axes.set_ylabel(f"step, ms (context {curve['context_tokens']} tokens)")
    axes.set_title(f"{document['name']} ({document['kind']})")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # ValueError: an ending that is no format
        what = f"{path} cannot be written: {getattr(error, 'strerror', None) or 'its ending is no picture format'}"
        raise InputError([_problem(what, "a picture has an ending such as .png", "correct the path")]) from None


def _problem(what: str, rule: str, remedy: str) -> Problem:
    return Problem(COMMAND, 1, 1, "--plot", what, rule, remedy)


def _row_of(column: int, last: int) -> float:
    return float(last ** (column / (WIDTH - 1)))


def _column_of(row: int, last: int) -> int:
    return round((WIDTH - 1) * math.log(row) / math.log(last)) if last > 1 else 0


def _at(rows: Sequence[int], ms: Sequence[float], row: float) -> float:
    """The measured rows nearest to a place, so that a stair stays a stair."""
    nearest = min(range(len(rows)), key=lambda i: abs(rows[i] - row))
    return ms[nearest]
