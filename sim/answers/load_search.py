"""The highest load that meets a condition: by doubling and halving, always after a bounded number of looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

Condition = Callable[[float], bool]
STEP_DOWN = 4.0
MOST_HALVINGS = 60  # a ratio of 2 is halved to the last bit of a float by then


class Boundary(NamedTuple):
    """meets: the highest load known to meet it, None if there is none; fails: the lowest known not to, likewise."""

    meets: float | None
    fails: float | None


def highest_load(
    condition: Condition, start: float, *, least: float, most: float, whole: bool, precision: float
) -> Boundary:
    """Where the condition, which holds up to some load, stops holding; the two loads are within `precision` of it.

    precision: of the load, as a fraction; whole loads are neighbours at the end. The search ends at `least` and `most`.
    """
    load = min(max(start, least), most)
    found = _up(condition, load, most) if condition(load) else _down(condition, load, least, whole)
    if found.meets is None or found.fails is None:
        return found
    return between(condition, found.meets, found.fails, whole=whole, precision=precision)


def between(condition: Condition, meets: float, fails: float, *, whole: bool, precision: float) -> Boundary:
    """Bisection between a load that meets the condition and a higher one that does not."""
    for _ in range(MOST_HALVINGS):
        if fails - meets <= (1 if whole else precision * fails):
            break
        middle = float((int(meets) + int(fails)) // 2) if whole else math.sqrt(meets * fails)
        if condition(middle):
            meets = middle
        else:
            fails = middle
    return Boundary(meets, fails)


def known_bracket(condition: Condition, known: Iterable[float]) -> Boundary:
    """The same from loads that were looked at already: the highest that meets it below the lowest that does not."""
    fails = None
    meets = None
    for load in sorted(known):
        if condition(load):
            meets = load
        else:
            fails = load
            break
    return Boundary(meets, fails)


def _up(condition: Condition, load: float, most: float) -> Boundary:
    """Doubled, from a load that meets the condition, until one does not."""
    while load < most:
        above = min(2 * load, most)
        if not condition(above):
            return Boundary(load, above)
        load = above
    return Boundary(load, None)


def _down(condition: Condition, load: float, least: float, whole: bool) -> Boundary:
    """Divided, from a load that does not meet it, until one does."""
    while load > least:
        below = max(load / STEP_DOWN, least)
        below = float(math.floor(below)) if whole else below
        if condition(below):
            return Boundary(below, load)
        load = below
    return Boundary(None, load)
