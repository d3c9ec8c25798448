"""Percentiles, Student t intervals over replications, and the MSER-5 warm-up rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..engine.records import Floats, Ints

CONFIDENCE = 0.95
MSER_BATCH = 5


class Sample(NamedTuple):
    """A ratio, seen in independent replications: one numerator and one denominator each. A mean has denominators 1."""

    numerators: Floats
    denominators: Floats

    @property
    def estimate(self) -> float:
        """Ratio of the sums."""
        return float(self.numerators.sum() / self.denominators.sum())

    @property
    def deviations(self) -> Floats:
        """What each replication adds to the error of the estimate, times their number (linearised ratio)."""
        residuals: Floats = self.numerators - self.estimate * self.denominators
        return residuals / float(self.denominators.mean())


def sample_of(values: ArrayLike) -> Sample:
    """A plain mean as a sample."""
    numerators = np.asarray(values, np.float64)
    return Sample(numerators, np.ones(len(numerators)))


def mean_interval(sample: Sample, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Student t interval of the estimate; None with fewer than two replications."""
    return _t_interval(sample.estimate, sample.deviations, confidence) if len(sample.numerators) > 1 else None


def paired_difference_interval(a: Sample, b: Sample, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Student t interval of a - b where replication r of both saw the same requests; None with fewer than two."""
    if len(a.numerators) != len(b.numerators):
        raise ValueError(f"pairs need equal numbers of replications, got {len(a.numerators)} and {len(b.numerators)}")
    if len(a.numerators) < 2:
        return None
    return _t_interval(a.estimate - b.estimate, a.deviations - b.deviations, confidence)


def _t_interval(estimate: float, deviations: Floats, confidence: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # costs more to import than a small run takes

    count = len(deviations)
    quantile = float(stdtrit(count - 1, 0.5 + confidence / 2))
    half_width = quantile * float(np.std(deviations, ddof=1)) / count**0.5
    return estimate - half_width, estimate + half_width


def percentiles(values: Floats, percents: Sequence[float]) -> list[float] | None:
    """Percentiles by linear interpolation between order statistics (numpy's default rule); None without values."""
    return [float(value) for value in np.percentile(values, percents)] if len(values) else None


def weighted_percentiles(values: Floats, weights: Ints, percents: Sequence[float]) -> list[float] | None:
    """`percentiles` of the sample in which each value occurs `weight` times (whole numbers); None if that is empty."""
    order = np.argsort(values)
    ends = np.cumsum(weights[order])
    if not len(ends) or ends[-1] == 0:
        return None
    ranks = (ends[-1] - 1) * np.asarray(percents, np.float64) / 100
    below = np.floor(ranks)
    low = values[order[np.searchsorted(ends, below, side="right")]]
    high = values[order[np.searchsorted(ends, np.ceil(ranks), side="right")]]
    return [float(value) for value in low + (high - low) * (ranks - below)]


def lag1_correlation(series: Floats) -> float:
    """Correlation of neighbours in a series; 0 of a constant one."""
    deviations = series - series.mean()
    squares = float((deviations * deviations).sum())
    return float((deviations[1:] * deviations[:-1]).sum()) / squares if squares else 0.0


def mser5_limit(observations: int) -> int:
    """The most that `mser5_truncation` cuts; where it cuts that much, no steady state was seen."""
    return MSER_BATCH * (observations // MSER_BATCH // 2)


def mser5_truncation(series: Floats) -> int:
    """How many leading observations to cut as warm-up: the MSER-5 rule (White, 1997), at most half of the series.

    Over means of 5 observations, the cut d minimises (sum of squares about the mean of what is kept) / (kept)^2.
    A cut at the limit means that no steady state was seen.
    """
    batches = len(series) // MSER_BATCH
    if batches < 2:
        return 0
    means = series[: batches * MSER_BATCH].reshape(batches, MSER_BATCH).mean(axis=1)
    tail = (means - means[-1])[::-1]  # about a typical late value, against cancellation
    kept = np.arange(1, batches + 1)
    squares = np.cumsum(tail**2) - np.cumsum(tail) ** 2 / kept
    score = (squares / kept**2)[::-1]
    return MSER_BATCH * int(np.argmin(score[: mser5_limit(len(series)) // MSER_BATCH + 1]))
