"""Cells of a CSV file, by the names in its header; fields may be quoted, each row is one line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any

from ..inputs.errors import Problem

DELIMITERS = (",", "\t", ";")
REMEDY = "correct or remove this row"


def header_fields(line: str) -> list[str]:
    """The names in a header, split at whichever delimiter gives the most of them."""
    return max((_names(line, delimiter) for delimiter in DELIMITERS), key=len)


class CsvCells:
    """Reads rows below a header. `names` are the columns that are wanted, each of them in the header."""

    first_row = 1  # the line index of the first row

    def __init__(self, file: str, lines: Sequence[str], names: Iterable[str]) -> None:
        header = lines[0]
        self._file = file
        self._lines = len(lines)
        self._delimiter = max(DELIMITERS, key=lambda delimiter: len(_names(header, delimiter)))
        fields = _names(header, self._delimiter)
        self._width = len(fields)
        self._at = {name: fields.index(name) for name in names}

    def cells(
        self, first: int, block: Sequence[str], problems: list[Problem]
    ) -> tuple[list[int], dict[str, list[Any]]]:
        """Line numbers of the block's good rows, and each wanted column of them. `first`: the number of its first line.

        Rows of another width than the header's are added to `problems`.
        """
        numbers, rows = list(range(first, first + len(block))), [line.split(self._delimiter) for line in block]
        if any('"' in line for line in block) or any(len(fields) != self._width for fields in rows):
            numbers, rows = self._one_by_one(first, block, problems)
        return numbers, {name: [fields[at] for fields in rows] for name, at in self._at.items()}

    def _one_by_one(
        self, first: int, block: Sequence[str], problems: list[Problem]
    ) -> tuple[list[int], list[list[str]]]:
        numbers: list[int] = []
        rows: list[list[str]] = []
        for number, line in enumerate(block, start=first):
            fields = self._fields(line)
            if isinstance(fields, list) and len(fields) == self._width:
                numbers.append(number)
                rows.append(fields)
                continue
            cut = ", the file may be cut off" if number == self._lines else ""
            what, rule = f"{len(fields)} fields{cut}", f"the header has {self._width} columns"
            if isinstance(fields, str):
                what, rule = fields + cut, "a quoted field ends on its line"
            problems.append(Problem(self._file, number, len(line) + 1, "row", what, rule, REMEDY))
        return numbers, rows

    def column(self, line: str, name: str) -> int:
        """Where a cell stands in its line, from 1."""
        before, quoted = self._at[name], False
        for index, char in enumerate(line):
            quoted ^= char == '"'
            before -= char == self._delimiter and not quoted
            if before == 0:
                return index + 2 if self._at[name] else 1
        return 1

    def _fields(self, line: str) -> list[str] | str:
        """The fields, or what is wrong with the quotes."""
        if '"' not in line:
            return line.split(self._delimiter)
        try:
            return next(csv.reader([line], delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            return str(error)


def _names(line: str, delimiter: str) -> list[str]:
    return [name.strip().strip('"').strip() for name in line.split(delimiter)]
