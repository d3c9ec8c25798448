"""Arrival times of requests that do not come from a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..inputs.scenario import AtOnce, Closed, Gamma, Poisson

_LEAST_SHAPE, _LARGEST_SHAPE = 1e-300, 1e12  # beyond them numpy's gamma is not a number; all gaps are equal or 0 there


def arrival_times_ms(
    arrivals: AtOnce | Closed | Poisson | Gamma, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """`count` non-decreasing times in ms since the start; the first open arrival comes after one gap.

    `at_once` and `closed` are all 0: in a closed loop the engine sends a request when another one ended.
    """
    if isinstance(arrivals, Poisson):
        gaps = rng.standard_exponential(count)
    elif isinstance(arrivals, Gamma):
        shape = min(max(1 / arrivals.cv / arrivals.cv, _LEAST_SHAPE), _LARGEST_SHAPE)
        gaps = rng.standard_gamma(shape, count) / shape
    else:
        return np.zeros(count)
    with np.errstate(over="ignore"):  # the caller refuses times that are not finite
        times: NDArray[np.float64] = np.cumsum(gaps) * (1000 / arrivals.rate)
    return times
