"""Which requests meet the service level objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..inputs.scenario import Slo
from .latency import Latencies


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
