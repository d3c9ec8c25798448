"""Arrival times of requests that do not come from a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..inputs.errors import Problem
from ..inputs.scenario import AtOnce, Closed, Gamma, Poisson
from .problem_at import ProblemAt

_LEAST_SHAPE, _LARGEST_SHAPE = 1e-300, 1e12  # beyond them numpy's gamma is not a number; all gaps are equal or 0 there


def arrival_times_ms(
    arrivals: AtOnce | Closed | Poisson | Gamma, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """`count` non-decreasing times in ms since the start; the first open arrival comes after one gap.

    `at_once` and `closed` are all 0: in a closed loop the engine sends a request when another one ended.
    """
    if not isinstance(arrivals, Poisson | Gamma):
        return np.zeros(count)
    return _times_ms(_unit_gaps(arrivals, count, rng), arrivals.rate)


def arrivals_before_ms(
    arrivals: Poisson | Gamma, end_ms: float, most: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The times of `arrival_times_ms` that lie below `end_ms`, at most `most` + 1 of them: more need not be known."""
    expected = min(arrivals.rate * end_ms / 1000, most)
    gaps = np.zeros(0)
    while True:
        count = min(int(expected + 4 * expected**0.5) + 16 + len(gaps), most + 1 - len(gaps))
        gaps = np.concatenate([gaps, _unit_gaps(arrivals, count, rng)])
        times = _times_ms(gaps, arrivals.rate)
        if times[-1] >= end_ms or len(times) > most:
            return times[: np.searchsorted(times, end_ms)]


def no_arrivals(duration_s: float, replication: int, problem: ProblemAt) -> Problem:
    """What is wrong where a `duration_s` ends before the first request."""
    what = f"no request arrives within {duration_s:g} s in replication {replication}"
    rule, remedy = "a replication has at least one request", "give a longer time"
    return problem("workload.duration_s", what, rule, remedy)


def _unit_gaps(arrivals: Poisson | Gamma, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Gaps of mean 1; drawn in one part or in several, they are the same."""
    if isinstance(arrivals, Poisson):
        return rng.standard_exponential(count)
    shape = min(max(1 / arrivals.cv / arrivals.cv, _LEAST_SHAPE), _LARGEST_SHAPE)
    return rng.standard_gamma(shape, count) / shape


def _times_ms(gaps: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # the caller refuses times that are not finite
        times: NDArray[np.float64] = np.cumsum(gaps) * (1000 / rate)
    return times
