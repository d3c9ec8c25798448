"""`--vary path=values`: the axes of a grid. Values are a comma list, `a:b` and `a:b:step` in it inclusive ranges."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from .errors import InputError, Problem
from .source import Finding, Mark, placed
from .wording import shown
from .yaml_text import parse_value

MOST_CELLS = 10_000
_RULE = "an axis is path=values"
_EXAMPLE = "write for example speculation.num_speculative_tokens=0:8"
_NUMBER = r"[-+]?\d{1,15}(?:\.\d{0,15})?(?:[eE][-+]?\d{1,2})?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")
_RANGE_LIKE = re.compile(r"[-+\d.eE]+(:[-+\d.eE]*)+")


class Axis(NamedTuple):
    """A path into the scenario and its values in order, without repetitions."""

    path: str
    values: tuple[Any, ...]


class _Range(NamedTuple):
    first: Decimal
    step: Decimal
    length: int


def parse_axes(texts: Sequence[str]) -> list[Axis]:
    """The axes of a grid of at most `MOST_CELLS` cells. Raises InputError with every mistake in any of them."""
    problems: list[Problem] = []
    items: dict[str, list[Any]] = {}
    for text in texts:
        try:
            path, values = _items(text)
            _refuse_overlap(path, items, text)
            items[path] = values
        except InputError as error:
            problems += error.problems
    if not texts:
        problems.append(_problem("", "there is no axis", "a sweep varies something", f"add --vary: {_EXAMPLE}"))
    cells = math.prod(_count(values) for values in items.values())
    if not problems and cells > MOST_CELLS:
        what = f"{cells:,} cells"
        problems.append(_problem("", what, f"a sweep has at most {MOST_CELLS:,}", "vary less, or in larger steps"))
    if problems:
        raise InputError(problems)
    return [Axis(path, _values(values)) for path, values in items.items()]


def axis_mark(axis: Axis) -> str:
    """What stands for the "file" where a value of an axis is wrong."""
    return f"--vary {axis.path}"


def _items(text: str) -> tuple[str, list[Any]]:
    """The path, and the values as written, ranges not yet counted out."""
    path, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not path or not all(path.split(".")):
        what = "no = in it" if not equals else f"{shown(path)} is no path"
        raise InputError([_problem(text, what, _RULE, _EXAMPLE)])
    if not values.strip(", "):
        raise InputError([_problem(text, f"{path} has no values", "an axis has at least one", _EXAMPLE)])
    file = _file(text)
    listed = parse_value(f"[{values}]", file, path, len(path) + 1)
    if listed.problems:
        raise InputError(listed.problems)
    data = listed.data[path]
    if not isinstance(data, list):
        raise InputError([_problem(text, f"{shown(values)} is no list of values", _RULE, _EXAMPLE)])
    return path, [_item(value, text) for value in data]


def _item(value: Any, text: str) -> Any:
    if not isinstance(value, str) or not _RANGE_LIKE.fullmatch(value):
        return value
    match = _RANGE.fullmatch(value)
    if match is None:
        what = f"{shown(value)} is no range"
        raise InputError([_problem(text, what, "a range is first:last or first:last:step", "write it as 0:8")])
    first, last, step = Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1)
    if step == 0 or (last - first) / step < 0:
        what = f"{shown(value)} is empty"
        raise InputError(
            [_problem(text, what, "a range goes from first to last in steps", "write it as 0:8 or 8:0:-2")]
        )
    return _Range(first, step, int((last - first) / step) + 1)


def _refuse_overlap(path: str, others: dict[str, Any], text: str) -> None:
    for other in others:
        if f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}."):
            what = f"{path} is varied twice" if path == other else f"{path} and {other} set the same part"
            raise InputError([_problem(text, what, "axes are independent", "keep one of them")])


def _count(items: list[Any]) -> int:
    return sum(item.length if isinstance(item, _Range) else 1 for item in items)


def _values(items: list[Any]) -> tuple[Any, ...]:
    every = [value for item in items for value in (_counted(item) if isinstance(item, _Range) else [item])]
    return tuple({json.dumps(value): value for value in every}.values())


def _counted(numbers: _Range) -> list[int | float]:
    """Decimal, so that 0.1:0.3:0.1 holds the numbers that one would write."""
    every = [numbers.first + index * numbers.step for index in range(numbers.length)]
    whole = all(one == one.to_integral_value() for one in every)
    return [int(one) if whole else float(one) for one in every]


def _problem(text: str, what: str, rule: str, remedy: str) -> Problem:
    return placed(Mark(_file(text), 1, 1), Finding("--vary", what, rule, remedy))


def _file(text: str) -> str:
    return " ".join(f"--vary {text}".split())[:100] if text else "specsim sweep"
