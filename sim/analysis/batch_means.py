"""Intervals from one long run in a steady state: batch means of latencies, refused where theory does not allow them.

The requests in order of arrival are divided into 20 batches. If a batch is long against the memory of the process, the
batches' means are nearly independent and normal, and Student's t applies to them (Law and Carson, 1979). That cannot be
seen in 20 numbers, so each batch is divided into 10 parts: only where neighbouring parts correlate by less than 0.4 are
whole batches practically uncorrelated. For a percentile the part's share of requests above it takes the place of the
mean, which to first order is what moves a percentile.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ..engine.records import Floats, Ints
from .latency import Latencies
from .statistics import lag1_correlation, mean_interval, sample_of

BATCHES = 20
PARTS = 10  # of a batch
MOST_CORRELATION = 0.4  # of neighbouring parts
MIN_BATCH = 25  # requests, for a percentile those beyond it: 500 in a batch for a p95
PERCENTS = {"mean": None, "median": 50, "p95": 95, "p99": 99}
METRICS = {
    f"{statistic}_{latency}_ms": (latency, percent)
    for latency in ("ttft", "tpot", "e2el", "decode", "queue")
    for statistic, percent in PERCENTS.items()
}

Refusal = Literal["few", "correlated"]


class BatchSeries(NamedTuple):
    """Latencies of one run's requests after the warm-up, in order of arrival, and the slice of each request."""

    latencies: Latencies
    slice_index: Ints

    def of(self, metric: str, part: int | None = None) -> Floats:
        """The latency behind a metric of `METRICS`, of one slice if `part` is given; NaN where it is undefined."""
        values: Floats = getattr(self.latencies, METRICS[metric][0])
        return values if part is None else values[self.slice_index == part]


def batch_intervals(
    series: BatchSeries, part: int | None = None
) -> tuple[dict[str, list[float]], dict[Refusal, list[str]]]:
    """Intervals by metric, and the metrics for which there is none, by why. part: of one slice."""
    intervals: dict[str, list[float]] = {}
    refused: dict[Refusal, list[str]] = {}
    for metric, (_, percent) in METRICS.items():
        values = series.of(metric, part)
        found = batch_interval(values[~np.isnan(values)], percent)
        if isinstance(found, tuple):
            intervals[metric] = list(found)
        else:
            refused.setdefault(found, []).append(metric)
    return intervals, refused


def batch_interval(values: Floats, percent: float | None = None) -> tuple[float, float] | Refusal:
    """95 % interval of the mean (or a percentile) around the value of the whole series, or why there is none."""
    return _interval(values, np.zeros(len(values)), percent)


def batch_difference(
    series: BatchSeries, other: BatchSeries, metric: str, part: int | None = None
) -> tuple[float, float] | None:
    """The interval of series - other, batch by batch: both are latencies of the same requests; None where refused."""
    ours, theirs = series.of(metric, part), other.of(metric, part)
    if len(ours) != len(theirs):  # one arm could not serve them all
        return None
    both = ~(np.isnan(ours) | np.isnan(theirs))
    found = _interval(ours[both], theirs[both], METRICS[metric][1])
    return found if isinstance(found, tuple) else None


def _interval(values: Floats, others: Floats, percent: float | None) -> tuple[float, float] | Refusal:
    beyond = 1.0 if percent is None else 1 - percent / 100
    size = len(values) // (BATCHES * PARTS)
    if size * PARTS * beyond < MIN_BATCH * (1 - 1e-9):
        return "few"
    first = len(values) - size * BATCHES * PARTS  # the rest is cut where a warm-up would be
    cuts = (BATCHES, size * PARTS)
    batches = _statistic(values[first:].reshape(cuts), percent) - _statistic(others[first:].reshape(cuts), percent)
    movers = _mover(values, percent) - _mover(others, percent)
    if lag1_correlation(movers[first:].reshape(-1, size).mean(axis=1)) > MOST_CORRELATION:
        return "correlated"
    interval = mean_interval(sample_of(batches))
    assert interval is not None
    whole = float(_statistic(values[None], percent)[0] - _statistic(others[None], percent)[0])
    half_width = (interval[1] - interval[0]) / 2
    return whole - half_width, whole + half_width


def _statistic(rows: Floats, percent: float | None) -> Floats:
    statistic: Floats = rows.mean(axis=1) if percent is None else np.percentile(rows, percent, axis=1)
    return statistic


def _mover(values: Floats, percent: float | None) -> Floats:
    """What a statistic is to first order a mean of."""
    return values if percent is None else (values > np.percentile(values, percent)).astype(np.float64)
