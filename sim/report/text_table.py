"""Tables of plain text, columns aligned: the same in a terminal and in a file."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of a table, two spaces between columns; the first `left` columns start, the others end at their edge."""
    every = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in every) for column in range(len(header))]
    return ["  ".join(_cells(row, widths, left)).rstrip() for row in every]


def _cells(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    return [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
