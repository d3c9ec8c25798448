"""Which requests meet the service level objective, and the latencies that it limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..inputs.scenario import Slo
from .latency import Latencies


class SloLimit(NamedTuple):
    """A limit on one latency (`ttft`, `tpot`, `e2el`), at a percentile or on the mean (None)."""

    latency: str
    percentile: float | None
    limit_ms: float

    @property
    def metric(self) -> str:
        """What it limits, as results call it: `p95_ttft_ms`."""
        statistic = "mean" if self.percentile is None else f"p{self.percentile:g}"
        return f"{statistic}_{self.latency}_ms"


def slo_limits(slo: Slo) -> tuple[SloLimit, ...]:
    """Every limit of an SLO. A deadline limits E2E latency at a percentile, where no other limit does; no mean."""
    percentile = None if slo.percentile == "mean" else float(slo.percentile)
    given = {"ttft": slo.ttft_ms, "tpot": slo.tpot_ms, "e2el": slo.e2el_ms}
    if percentile is not None and slo.e2el_ms is None and slo.deadline_s is not None:
        given["e2el"] = slo.deadline_s * 1e3
    return tuple(SloLimit(name, percentile, limit) for name, limit in given.items() if limit is not None)


def slo_values(latencies: Latencies, limits: Sequence[SloLimit]) -> list[float | None]:
    """The latency that each limit is about, in ms; None where no request has it."""
    found: list[float | None] = []
    for limit in limits:
        values = getattr(latencies, limit.latency)
        values = values[~np.isnan(values)]
        if not len(values):
            found.append(None)
        elif limit.percentile is None:
            found.append(float(values.mean()))
        else:
            found.append(float(np.percentile(values, limit.percentile)))
    return found


def meets_deadline(latencies: Latencies, slo: Slo | None) -> NDArray[np.bool_]:
    """Requests that end within `deadline_s`; all of them where there is none."""
    if slo is None or slo.deadline_s is None:
        return np.ones(len(latencies.e2el), np.bool_)
    return latencies.e2el <= slo.deadline_s * 1e3


def meets_slo(latencies: Latencies, slo: Slo) -> NDArray[np.bool_]:
    """Requests within every limit that is given, the deadline included; a one-token output has no TPOT to miss."""
    met = meets_deadline(latencies, slo)
    for values, limit_ms in (
        (latencies.ttft, slo.ttft_ms),
        (latencies.tpot, slo.tpot_ms),
        (latencies.e2el, slo.e2el_ms),
    ):
        if limit_ms is not None:
            met &= ~(values > limit_ms)
    return met
