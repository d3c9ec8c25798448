"""Times of points by phase and shape, of the whole target: of two depths, the slope of a layer times its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .errors import ProfileError
from .point import Point
from .runner import AGAIN
from .store import Points, Row

BY_DEPTH = ("body", "attention", "prefill", "kv_update")
DISTURBED = 1.1  # a mean that much above the median is that of a machine that did something else


def row_ms(row: Row) -> float:
    """What a point takes: the mean, of which sums of steps are made; the median where calls were disturbed."""
    mean, median = float(row.sample["mean_ms"]), float(row.sample["median_ms"])
    return median if mean > DISTURBED * median else mean


def first_times(points: Points) -> dict[Point, float]:
    """The time of each point, from the pass that stands for it: the first, or the one after a drift."""
    found = {row.point: row_ms(row) for row in points.ok() if not row.point.repeat}
    again = {replace(row.point, repeat=0): row_ms(row) for row in points.ok() if row.point.repeat == AGAIN}
    return found | {point: ms for point, ms in again.items() if point.phase != "sentinel"}


class Times:
    """Times of one results folder at a depth of the target (0: the whole model)."""

    def __init__(self, points: Points, depth: int = 0) -> None:
        self.points = points
        self.depths = points.setup.depths
        self.layers = depth or points.setup.target.layers
        self._known = first_times(points)

    def of(self, phase: str) -> Iterator[tuple[Point, float]]:
        """Every point of a phase with its time; a point of two depths once, where both are known."""
        for point, ms in self._known.items():
            if point.phase != phase:
                continue
            if phase in BY_DEPTH and self.depths:
                if point.layers == self.depths[0]:
                    yield from self._by_slope(point, ms)
            else:
                yield point, ms

    def need(self, phase: str) -> dict[Point, float]:
        """As `of`, as a dictionary; raises ProfileError where there is no point."""
        found = dict(self.of(phase))
        if not found:
            rule = f"a calibration needs points of the phase {phase}"
            raise ProfileError("specsim profile fit", phase, "was not measured", rule, "run the plan to its end")
        return found

    def at_depth(self, layers: int) -> bool:
        """Whether whole steps, which are measured at one depth, are of this many layers."""
        return layers == self.layers or not self.depths

    def _by_slope(self, point: Point, low_ms: float) -> Iterator[tuple[Point, float]]:
        low, high = self.depths
        high_ms = self._known.get(Point(point.phase, point.spec, point.mode, high, point.value))
        if high_ms is not None:
            yield point, low_ms + (high_ms - low_ms) * (self.layers - low) / (high - low)
