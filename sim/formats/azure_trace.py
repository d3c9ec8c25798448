"""Reader of the Azure LLM inference traces: TIMESTAMP, ContextTokens, GeneratedTokens, one request a row.

Timestamps such as `2023-11-16 18:15:46.6805900` are taken as UTC whatever the machine's time zone; a `Z` or `+00:00`
at their end says the same and is accepted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inputs.errors import InputError, Problem
from .first_problems import first_problems
from .token_counts import TOKEN_COUNT_RULE, token_count
from .trace_columns import TraceColumns

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_STAMP = re.compile(r"((?:19|20|21)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00:00)?", re.ASCII)
_STAMP_RULE = "a timestamp like 2023-11-16 18:15:46.6805900 (UTC) is needed"
_REMEDY = "correct or remove this row"


def is_azure_header(line: str) -> bool:
    """Whether a first line has the columns of this format, in any order."""
    return set(COLUMNS) <= set(_fields(line))


def read_azure_trace(path: Path, lines: list[str]) -> TraceColumns:
    """Parse the lines of an Azure trace.

    Raises InputError with the line and column of every bad row: unknown header, missing fields,
    unreadable values, timestamps that run backwards, no rows.
    """
    rows = _Rows(path, lines[0] if lines else "")
    for number, line in enumerate(lines[1:], start=2):
        rows.add(number, line, last=number == len(lines))
    if not rows.stamps and not rows.problems:
        rows.refuse(1, 1, "file", "there are no rows below the header", "a trace has at least one request", "add rows")
    times = rows.times_ns()
    if rows.problems:
        raise InputError(first_problems(rows.problems))
    return TraceColumns(
        _read_only((times - times[0]) / 1e6),
        _read_only(np.array(rows.prompt_tokens, dtype=np.int64)),
        _read_only(np.array(rows.output_tokens, dtype=np.int64)),
    )


class _Rows:
    """Values and problems gathered row by row."""

    def __init__(self, path: Path, header: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.numbers: list[int] = []
        self.stamps: list[str] = []
        self.prompt_tokens: list[int] = []
        self.output_tokens: list[int] = []
        names = _fields(header)
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            rule = f"an Azure trace has the columns {', '.join(COLUMNS)}"
            what = f"the header {header[:80]!r} lacks {', '.join(missing)}"
            self.refuse(1, 1, missing[0], what, rule, "add the missing columns or use another trace")
            raise InputError(self.problems)
        self._width = len(names)
        self._where = [names.index(name) for name in COLUMNS]

    def refuse(self, line: int, column: int, field: str, what: str, rule: str, remedy: str = _REMEDY) -> None:
        self.problems.append(Problem(str(self.path), line, column, field, what, rule, remedy))

    def add(self, number: int, line: str, last: bool) -> None:
        fields = line.split(",")
        if len(fields) != self._width:
            cut = ", the file may be cut off" if last else ""
            what = f"{len(fields)} fields{cut}"
            self.refuse(number, len(line) + 1, "row", what, f"the header has {self._width} columns")
            return
        stamp_at, prompt_at, output_at = self._where
        stamp = _STAMP.fullmatch(fields[stamp_at].strip())
        prompt_tokens = token_count(fields[prompt_at])
        output_tokens = token_count(fields[output_at])
        if stamp and prompt_tokens and output_tokens:
            self.numbers.append(number)
            self.stamps.append(stamp[1])
            self.prompt_tokens.append(prompt_tokens)
            self.output_tokens.append(output_tokens)
            return
        for name, at, good in zip(COLUMNS, self._where, (stamp, prompt_tokens, output_tokens), strict=True):
            if not good:
                column = len(",".join(fields[:at])) + (2 if at else 1)
                rule = _STAMP_RULE if name == COLUMNS[0] else TOKEN_COUNT_RULE
                self.refuse(number, column, name, f"{fields[at][:40]!r}", rule)

    def times_ns(self) -> NDArray[np.int64]:
        """The timestamps in ns; refuses impossible dates and rows earlier than the row before."""
        try:
            times = np.array(self.stamps, dtype="datetime64[ns]").astype(np.int64)
        except ValueError:
            for number, stamp in zip(self.numbers, self.stamps, strict=True):
                if not _is_date(stamp):
                    self.refuse(number, 1, COLUMNS[0], f"{stamp!r} is not a date", _STAMP_RULE)
            return np.zeros(0, dtype=np.int64)
        for at in np.flatnonzero(np.diff(times) < 0) + 1:
            what = f"{self.stamps[at]} is earlier than {self.stamps[at - 1]} on line {self.numbers[at - 1]}"
            self.refuse(self.numbers[at], 1, COLUMNS[0], what, "rows are in order of arrival", "sort the rows by time")
        return times


def _fields(line: str) -> list[str]:
    return [name.strip() for name in line.split(",")]


def _is_date(stamp: str) -> bool:
    try:
        np.datetime64(stamp, "ns")
    except ValueError:
        return False
    return True


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    values.setflags(write=False)
    return values
