"""Grid points of a known function, as few as keep linear interpolation close to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TOLERANCE = 0.004  # at three points of each interval; leaves room below 1 % for what lies between them

Function = Callable[[float], float]


def grid_points(functions: Sequence[Function], seeds: Sequence[int], tolerance: float = TOLERANCE) -> list[int]:
    """Whole numbers from the first seed to the last between which all functions are nearly linear.

    Intervals are halved until the functions at their quarters differ from the line by at most `tolerance`, relative.
    """
    points = [seeds[0]]
    for low, high in zip(seeds, seeds[1:], strict=False):
        points += _between(functions, low, high, tolerance) + [high]
    return points


def _between(functions: Sequence[Function], low: int, high: int, tolerance: float) -> list[int]:
    if high - low < 2 or all(_linear(function, low, high, tolerance) for function in functions):
        return []
    middle = (low + high) // 2
    left, right = _between(functions, low, middle, tolerance), _between(functions, middle, high, tolerance)
    return [*left, middle, *right]


def _linear(function: Function, low: int, high: int, tolerance: float) -> bool:
    first, last = function(low), function(high)
    for quarter in (0.25, 0.5, 0.75):
        exact = function(low + (high - low) * quarter)
        if abs(first + (last - first) * quarter - exact) > tolerance * exact:
            return False
    return True
