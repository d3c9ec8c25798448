"""Grid points of a known function, as few as keep linear interpolation close to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

TOLERANCE = 0.004  # at a few points of each interval; leaves room below 1 % for what lies between them

Function = Callable[[float], float]


class Along(NamedTuple):
    """A function of the grid's axis, and the coordinate over which a table of it is linear."""

    function: Function
    coordinate: Function = float


def grid_points(functions: Sequence[Function | Along], seeds: Sequence[int], tolerance: float = TOLERANCE) -> list[int]:
    """Whole numbers from the first seed to the last between which all functions are nearly linear.

    Intervals are halved until the functions at a few points differ from the line by at most `tolerance`, relative.
    """
    along = [one if isinstance(one, Along) else Along(one) for one in functions]
    points = [seeds[0]]
    for low, high in pairwise(seeds):
        points += [*_between(along, low, high, tolerance), high]
    return points


def _between(functions: Sequence[Along], low: int, high: int, tolerance: float) -> list[int]:
    if high - low < 2 or all(_linear(function, low, high, tolerance) for function in functions):
        return []
    middle = (low + high) // 2
    left, right = _between(functions, low, middle, tolerance), _between(functions, middle, high, tolerance)
    return [*left, middle, *right]


def _linear(along: Along, low: int, high: int, tolerance: float) -> bool:
    function, coordinate = along
    first, last, begin, end = function(low), function(high), coordinate(low), coordinate(high)
    for point in _probes(low, high):
        exact = function(point)
        if abs(first + (last - first) * (coordinate(point) - begin) / (end - begin) - exact) > tolerance * exact:
            return False
    return True


def _probes(low: int, high: int) -> list[float]:
    """Where a kink shows: near the lower end, where a function is small beside the line, and in between."""
    return [low + 1, math.sqrt(max(low, 1) * high), *(low + (high - low) * quarter for quarter in (0.25, 0.5, 0.75))]
