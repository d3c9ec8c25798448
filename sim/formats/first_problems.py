"""How many problems of one data file are told: a wrong file can have one in each of its million rows."""

from __future__ import annotations

from dataclasses import replace

from ..inputs.errors import Problem

_SHOWN = 20


def first_problems(problems: list[Problem]) -> list[Problem]:
    """The first 20 problems in the order of the file and, where there are more, one that says how many."""
    ordered = sorted(problems)
    if len(ordered) <= _SHOWN:
        return ordered
    hidden = len(ordered) - _SHOWN
    return [*ordered[:_SHOWN], replace(ordered[_SHOWN], what=f"{hidden} more problems from here on")]
