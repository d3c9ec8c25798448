"""Cells of a file with one JSON object a line, by their keys; `usage.prompt_tokens` reaches into nested objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..inputs.errors import Problem

REMEDY = "correct or remove this row"
_RULE = "each line is one JSON object"
_DEEPEST = 8  # levels of objects in which keys are looked for


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


_DECODER: Any = json.JSONDecoder(parse_constant=_refuse)


def is_json_object(line: str) -> bool:
    """Whether a line begins like one."""
    return line.lstrip().startswith("{")


def json_keys(line: str) -> list[str] | None:
    """The keys of the object in a line, nested ones as `outer.inner`; None where it cannot be read."""
    value = _parsed(line)
    return list(_nested_keys(value, _DEEPEST)) if isinstance(value, dict) else None


def _nested_keys(value: dict[str, Any], depth: int) -> Iterator[str]:
    for key, inner in value.items():
        yield key
        if isinstance(inner, dict) and depth:
            yield from (f"{key}.{name}" for name in _nested_keys(inner, depth - 1))


class JsonCells:
    """Reads rows of objects. `names` are the keys that are wanted; a row without one has None there."""

    first_row = 0

    def __init__(self, file: str, lines: Sequence[str], names: Iterable[str]) -> None:
        self._file = file
        self._lines = len(lines)
        self._names = list(names)

    def cells(
        self, first: int, block: Sequence[str], problems: list[Problem]
    ) -> tuple[list[int], dict[str, list[Any]]]:
        """Line numbers of the block's good rows, and each wanted key of them. `first`: the number of its first line.

        Lines that are no JSON object are added to `problems`.
        """
        numbers, rows = [], []
        for number, line in enumerate(block, start=first):
            value = _parsed(line)
            if isinstance(value, dict):
                numbers.append(number)
                rows.append(value)
                continue
            cut = ", the file may be cut off" if number == self._lines else ""
            column, what = value if isinstance(value, tuple) else (1, f"{line[:40]!r} is no object")
            problems.append(Problem(self._file, number, column, "row", what + cut, _RULE, REMEDY))
        return numbers, {name: _values(rows, name) for name in self._names}

    def column(self, line: str, name: str) -> int:
        """Where the value of a key stands in its line, from 1; 1 where the line has no such key."""
        key = json.dumps(name.rpartition(".")[2] if f'"{name}"' not in line else name)
        found = re.search(re.escape(key) + r"\s*:\s*", line)
        return found.end() + 1 if found else 1


def _parsed(line: str) -> Any:
    """The value, or column and message of what is wrong."""
    try:
        value, end = _DECODER.scan_once(line, 0)  # what decode() does, where no blanks surround the value
        if end == len(line):
            return value
    except (StopIteration, ValueError, RecursionError):
        pass
    try:
        return _DECODER.decode(line)
    except json.JSONDecodeError as error:
        return error.colno, f"{error.msg} at {line[error.pos : error.pos + 20]!r}"
    except (ValueError, RecursionError) as error:  # NaN, thousands of digits, or brackets without end
        return 1, f"{line[:40]!r} cannot be read ({str(error)[:80]})"


def _values(rows: list[dict[str, Any]], name: str) -> list[Any]:
    if "." not in name:
        return [row.get(name) for row in rows]
    return [_nested_value(row, name) for row in rows]


def _nested_value(row: dict[str, Any], name: str) -> Any:
    value: Any = row
    for part in [name] if name in row else name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
