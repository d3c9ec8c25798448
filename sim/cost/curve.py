"""One-dimensional tables: the measured value at a point, linear between two, scaled by physics beyond the last."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from ..inputs.calibration import Curve

Scale = Callable[[float, float], float]


def proportional(rows: float, last: float) -> float:
    """Hold the boundary utilisation of a compute-bound pass: time grows with rows."""
    return rows / last


class CompiledCurve:
    """A curve behind a cache: the same rows come again and again, so most look-ups are one dictionary hit.

    Below the first point its value holds. `last`: the largest measured rows; beyond, `scale(rows, last)` times the last
    value.
    """

    def __init__(self, curve: Curve, scale: Scale = proportional) -> None:
        self._rows = list(curve.rows)
        self._ms = list(curve.ms)
        self._scale = scale
        self._known: dict[float, float] = {}
        self.last = self._rows[-1]

    def at(self, rows: float) -> float:
        """Milliseconds at so many rows."""
        ms = self._known.get(rows)
        if ms is None:
            ms = self._known[rows] = self._look_up(rows)
        return ms

    def _look_up(self, rows: float) -> float:
        if rows > self.last:
            return self._ms[-1] * self._scale(rows, self.last)
        return interpolated(self._rows, self._ms, rows)


def interpolated(points: Sequence[float], values: Sequence[float], at: float) -> float:
    """Linear between points, exact at them, constant outside."""
    i = bisect_right(points, at)
    if i == 0:
        return values[0]
    if i == len(points) or points[i - 1] == at:
        return values[i - 1]
    left, right = points[i - 1], points[i]
    return values[i - 1] + (values[i] - values[i - 1]) * ((at - left) / (right - left))


def bracket(points: Sequence[float], at: float) -> tuple[int, int, float]:
    """The two points around a value and how far it lies between them; outside, the nearest point twice."""
    i = bisect_right(points, at)
    if i == 0:
        return 0, 0, 0.0
    if i == len(points) or points[i - 1] == at:
        return i - 1, i - 1, 0.0
    return i - 1, i, (at - points[i - 1]) / (points[i] - points[i - 1])
