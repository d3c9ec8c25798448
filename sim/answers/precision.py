"""How precise the replications are so far, and how many there should be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..analysis.overload import judge_overload
from ..analysis.replications import field_sample
from ..analysis.statistics import mean_interval
from .replicate import ArmReplication


class Shortfall(NamedTuple):
    """An interval that is wider than asked for; half-widths as fractions of the value."""

    arm: str
    metric: str
    half_width: float
    wanted: float


def shortfalls(by_arm: Mapping[str, Sequence[ArmReplication]], wanted: Mapping[str, float]) -> list[Shortfall]:
    """Every arm's metrics that are not precise enough yet.

    Left out are metrics that an arm does not define or that are 0, and overloaded arms, whose means depend on how long
    one looks.
    """
    found = []
    for name, replications in by_arm.items():
        if judge_overload([one.overload for one in replications if one.overload]).detected:
            continue
        for metric, precision in wanted.items():
            half_width = _relative_half_width(replications, metric)
            if half_width is not None and half_width > precision:
                found.append(Shortfall(name, metric, half_width, precision))
    return found


def replications_wanted(missing: Sequence[Shortfall], done: int, most: int) -> int:
    """How many replications to have before looking again: as the half-width falls with the root, twice at most.

    A rule of counts alone, so that the number of processes changes nothing. Few looks also keep the intervals honest:
    to stop at the first good one of many is to choose it.
    """
    if not missing:
        return done
    factor = max(one.half_width / one.wanted for one in missing) ** 2
    return min(most, max(done + 1, min(2 * done, math.ceil(done * factor))))


def _relative_half_width(replications: Sequence[ArmReplication], metric: str) -> float | None:
    sample = field_sample([one.metrics for one in replications], metric)
    interval = mean_interval(sample) if sample is not None else None
    if sample is None or interval is None or not sample.estimate:
        return None
    return (interval[1] - interval[0]) / 2 / abs(sample.estimate)
