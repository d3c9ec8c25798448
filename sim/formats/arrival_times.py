"""Arrival times as other tools write them: dates in UTC, or numbers in a unit.

Dates such as `2023-11-16 18:15:46.6805900` are taken as UTC whatever the machine's time zone; a `Z` or `+00:00` at the
end says the same and is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

DATE: Literal["date"] = "date"
TimeUnit = Literal["date", "s", "ms", "us", "ns"]
MOST_SECONDS = 1e11  # the year 5138: a larger number of seconds is one of ms, us or ns
_DATE = re.compile(r"((?:19|20|21)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00:00)?", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_MOST = 1e19
_ZEROS = str.maketrans("123456789", "000000000")
_PLAIN_DATE = re.compile(r"0{4}-00-00[ T]00:00:00(?:\.0{1,9})?")


def is_date(cell: Any) -> bool:
    """Whether a cell looks like a date, valid or not."""
    return isinstance(cell, str) and _DATE.fullmatch(cell.strip()) is not None


def time_rule(unit: TimeUnit) -> str:
    """What a cell of an arrival column must be."""
    if unit == DATE:
        return "a timestamp like 2023-11-16 18:15:46.6805900 (UTC) is needed"
    return f"a time in {unit} is needed"


def arrival_times(cells: Sequence[Any], unit: TimeUnit) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Times in the unit (dates: ns since 1970, whole numbers), and which of the cells hold one."""
    quick = _plain_dates(cells) if unit == DATE else _plain_numbers(cells)
    if quick is not None:
        return quick, np.ones(len(quick), dtype=np.bool_)
    if unit == DATE:
        return _dates(cells)
    numbers = [_number(cell) for cell in cells]
    times = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    return times, ~np.isnan(times)


def milliseconds(times: NDArray[Any], unit: TimeUnit) -> NDArray[np.float64]:
    """Times since the first of `arrival_times`, in ms."""
    since = times - times[0]
    per_ms = {DATE: 1e6, "ns": 1e6, "us": 1e3}.get(unit, 1.0)
    return np.asarray(since * 1000 if unit == "s" else since / per_ms, dtype=np.float64)


def _all_spelled(cells: Sequence[Any], spelling: re.Pattern[str]) -> bool:
    """Whether all cells are text of a spelling in which no digit differs from another: few shapes to look at."""
    if set(map(type, cells)) != {str}:
        return False
    shapes = "\n".join(cells).translate(_ZEROS).split("\n")
    return len(shapes) == len(cells) and all(spelling.fullmatch(shape) for shape in set(shapes))


def _plain_dates(cells: Sequence[Any]) -> NDArray[np.int64] | None:
    """All cells at once, where all are dates without blanks or zone; None if any is not."""
    if not _all_spelled(cells, _PLAIN_DATE) or not "19" <= min(cells) <= max(cells) < "22":
        return None
    try:
        return np.array(cells, dtype="datetime64[ns]").astype(np.int64)
    except ValueError:  # a 30th of February among them
        return None


def _plain_numbers(cells: Sequence[Any]) -> NDArray[np.float64] | None:
    """All cells at once, where all are numbers of an ordinary size; None if any is not."""
    try:
        if _all_spelled(cells, _NUMBER):
            times = np.array([float(cell) for cell in cells])
        elif set(map(type, cells)) <= {int, float}:
            times = np.array(cells, dtype=np.float64)
        else:
            return None
    except OverflowError:  # whole numbers of hundreds of digits in JSON
        return None
    return times if np.all(np.abs(times) < _MOST) else None


def _dates(cells: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    found = [_DATE.fullmatch(cell.strip()) if isinstance(cell, str) else None for cell in cells]
    stamps = [match[1] if match else "NaT" for match in found]
    try:
        dates = np.array(stamps, dtype="datetime64[ns]")
    except ValueError:  # a 30th of February among them
        dates = np.array([stamp if _exists(stamp) else "NaT" for stamp in stamps], dtype="datetime64[ns]")
    return dates.astype(np.int64), ~np.isnat(dates)


def _exists(stamp: str) -> bool:
    try:
        np.datetime64(stamp, "ns")
    except ValueError:
        return False
    return True


def _number(cell: Any) -> float | None:
    if isinstance(cell, str):
        text = cell.strip()
        cell = float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    return float(cell) if -_MOST < cell < _MOST else None
