"""The rows of a trace file, whatever its format: cells to columns, and a place for every bad one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..inputs.errors import InputError, Problem
from ..inputs.numbers import MAX_REQUESTS
from ..inputs.scenario import TraceColumnMap
from .arrival_times import DATE, MOST_SECONDS, TimeUnit, arrival_times, is_date, milliseconds, time_rule
from .block_hashes import HASH_RULE, block_hashes
from .first_problems import first_problems
from .token_counts import TOKEN_COUNT_RULE, token_counts
from .trace_columns import TraceColumns

_BLOCK_LINES = 10_000  # cells are Python objects: a few MB of them at a time
_REMEDY = "correct or remove this row"


Columns = dict[str, list[Any]]


class Cells(Protocol):
    """Reads the rows of CSV or JSON lines; see `CsvCells` and `JsonCells`."""

    first_row: int

    def cells(self, first: int, block: Sequence[str], problems: list[Problem]) -> tuple[list[int], Columns]:
        """Line numbers and cells of the good rows of a block."""

    def column(self, line: str, name: str) -> int:
        """Where a cell stands in its line."""


def read_table(path: Path, lines: Sequence[str], source: Cells, names: TraceColumnMap) -> TraceColumns:
    """All rows as columns.

    Raises InputError with the line and column of every bad row: missing fields, unreadable values, times that run
    backwards, no rows, too many.
    """
    table = _Table(str(path), lines, source, names)
    if len(lines) <= source.first_row:
        table.refuse(1, 1, "file", "there are no rows", "a trace has at least one request", "add rows")
    elif (rows := len(lines) - source.first_row) > MAX_REQUESTS:
        table.refuse(1, 1, "file", f"{rows} rows", f"a trace has at most {MAX_REQUESTS}", "cut the file")
    else:
        for first in range(source.first_row, len(lines), _BLOCK_LINES):
            table.add(first + 1, lines[first : first + _BLOCK_LINES])
    return table.columns()


class _Table:
    """Columns and problems gathered block by block."""

    def __init__(self, file: str, lines: Sequence[str], source: Cells, names: TraceColumnMap) -> None:
        self._file, self._lines, self._source, self._names = file, lines, source, names
        self._problems: list[Problem] = []
        self._unit: TimeUnit | None = names.arrival_unit
        self._numbers: list[NDArray[np.int64]] = []
        self._times: list[NDArray[Any]] = []
        self._prompt_tokens: list[NDArray[np.int64]] = []
        self._output_tokens: list[NDArray[np.int64]] = []
        self._hash_counts: list[NDArray[np.int64]] = []
        self._hash_ids: list[NDArray[np.int64]] = []

    def refuse(self, line: int, column: int, field: str, what: str, rule: str, remedy: str = _REMEDY) -> None:
        self._problems.append(Problem(self._file, line, column, field, what, rule, remedy))

    def add(self, first: int, block: Sequence[str]) -> None:
        """One block of lines; `first` is the number of its first one."""
        numbers, cells = self._source.cells(first, block, self._problems)
        names = self._names
        prompts = self._lengths(numbers, cells, names.prompt_tokens, self._prompt_tokens)
        self._lengths(numbers, cells, names.output_tokens, self._output_tokens)
        if names.arrival is not None:
            self._arrivals(numbers, cells[names.arrival], names.arrival)
        if names.hash_ids is not None and names.hash_block_tokens is not None:
            self._hashes(numbers, cells[names.hash_ids], names.hash_ids, prompts, names.hash_block_tokens)

    def _bad(self, number: int, name: str, cell: Any, rule: str) -> None:
        what = f"{cell[:40]!r}" if isinstance(cell, str) else "is missing" if cell is None else f"{str(cell)[:40]}"
        self.refuse(number, self._source.column(self._lines[number - 1], name), name, what, rule)

    def _lengths(
        self, numbers: list[int], cells: Columns, name: str, into: list[NDArray[np.int64]]
    ) -> list[int | None]:
        counts = token_counts(cells[name])
        if None in counts:
            for number, cell, count in zip(numbers, cells[name], counts, strict=True):
                if count is None:
                    self._bad(number, name, cell, TOKEN_COUNT_RULE)
        into.append(np.array([count or 0 for count in counts], dtype=np.int64))
        return counts

    def _arrivals(self, numbers: list[int], cells: list[Any], name: str) -> None:
        if self._unit is None and cells:
            self._unit = DATE if is_date(cells[0]) else "s"
        unit = self._unit or "s"
        times, good = arrival_times(cells, unit)
        for at in np.flatnonzero(~good).tolist():
            shown = f"{cells[at]} is not a date" if unit == DATE and is_date(cells[at]) else cells[at]
            self._bad(numbers[at], name, shown, time_rule(unit))
        self._times.append(times[good])
        self._numbers.append(np.array(numbers, dtype=np.int64)[good])

    def _hashes(
        self, numbers: list[int], cells: list[Any], name: str, prompts: list[int | None], block_tokens: int
    ) -> None:
        lists = [block_hashes(cell, prompt, block_tokens) for cell, prompt in zip(cells, prompts, strict=True)]
        for number, cell, prompt, good in zip(numbers, cells, prompts, lists, strict=True):
            if good is None:
                shown = cell if type(cell) is not list else f"{len(cell)} hashes for {prompt} tokens"
                self._bad(number, name, shown, f"{HASH_RULE}, here of {block_tokens} tokens")
        self._hash_counts.append(np.array([len(ids or ()) for ids in lists], dtype=np.int64))
        self._hash_ids.append(np.array([one for ids in lists for one in ids or ()], dtype=np.int64))

    def columns(self) -> TraceColumns:
        """Everything gathered. Raises InputError with all problems, the order of the times among them."""
        arrival_ms = self._arrival_ms() if self._times else None
        if self._problems:
            raise InputError(first_problems(self._problems))
        hashes = (
            (
                _read_only(np.concatenate([[0], np.cumsum(np.concatenate(self._hash_counts))]).astype(np.int64)),
                _read_only(np.concatenate(self._hash_ids)),
                self._names.hash_block_tokens,
            )
            if self._hash_counts
            else (None, None, None)
        )
        return TraceColumns(
            None if arrival_ms is None else _read_only(arrival_ms),
            _read_only(np.concatenate(self._prompt_tokens)),
            _read_only(np.concatenate(self._output_tokens)),
            *hashes,
        )

    def _arrival_ms(self) -> NDArray[np.float64]:
        """Times since the first row; refuses rows earlier than the row before."""
        name, unit = self._names.arrival or "arrival", self._unit or "s"
        times, numbers = np.concatenate(self._times), np.concatenate(self._numbers)
        if not len(times):
            return np.zeros(0)
        if unit == "s" and np.abs(times).max() >= MOST_SECONDS:
            number = int(numbers[np.abs(times).argmax()])
            what = f"{np.abs(times).max():.6g} seconds are more than {MOST_SECONDS / 3.2e7:.0f} years"
            self.refuse(number, 1, name, what, "a time in s is needed", "give arrival_unit: ms, us or ns in `columns`")
        for at in (np.flatnonzero(np.diff(times) < 0) + 1).tolist():
            what = f"{self._cell(numbers[at])} is earlier than {self._cell(numbers[at - 1])} on line {numbers[at - 1]}"
            self.refuse(int(numbers[at]), 1, name, what, "rows are in order of arrival", "sort the rows by time")
        return milliseconds(times, unit)

    def _cell(self, number: int) -> str:
        """A time as the file spells it."""
        _, cells = self._source.cells(int(number), [self._lines[number - 1]], [])
        return str(cells[self._names.arrival or ""][0]).strip()


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    values.setflags(write=False)
    return values
