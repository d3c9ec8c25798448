"""What the runner asks of a device: who it is, and the time of a point."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from .point import Point
from .timing import Sample, Settings


class Measurement(NamedTuple):
    """A sample and what belongs to it: clocks, load, the trace of a live loop, why a graph was not captured."""

    sample: Sample
    extra: dict[str, Any]


class Device(Protocol):
    """A machine, or a model of one."""

    def environment(self) -> dict[str, Any]:
        """Name, versions and limits: the header of its points."""

    def measure(self, point: Point, settings: Settings) -> Measurement:
        """Time a point. Raises OutOfMemoryError, DeviceLostError, ProfileError."""
