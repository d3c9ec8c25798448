"""When to stop measuring, and what is kept: warm-up until stable, a confidence interval of the median, a time cap.

Time that is spent is counted as the sum of what was measured, so that the same rules hold for clocks that are not real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil, sqrt
from statistics import median
from typing import Any

import numpy as np

Block = Callable[[int], Sequence[float]]
MAD_TO_SD = 1.4826  # of a normal distribution
STABLE = 0.02  # medians of two warm-up blocks that differ by less are warm
STABLE_NOISE = 0.05  # so is an estimate of the noise: the point is noisy, and more of it would not help
NOISY = 0.1
MOST_CALLS_PER_BLOCK = 256
MOST_CALLS = 1000  # a median of as many is known


@dataclass(frozen=True, slots=True)
class Settings:
    """How long a point may take. rel_ci: half-width of the median's 95 % interval at which it is known well enough."""

    min_ms: float = 50.0
    min_n: int = 10
    rel_ci: float = 0.005
    max_s: float = 2.0
    warm_n: int = 3
    warm_ms: float = 25.0

    def most_ms(self) -> float:
        """Milliseconds that warm-up and measurement may take together."""
        return 1e3 * self.max_s


@dataclass(frozen=True, slots=True)
class Sample:
    """What repeated calls took. Sums of steps need the mean, single calls the median.

    mad_ms: median absolute deviation, scaled to a standard deviation. state: `converged`, `noisy` (its noise is known,
    the median not as well as asked for) or `timeout`.
    """

    median_ms: float
    mean_ms: float
    mad_ms: float
    q05_ms: float
    q95_ms: float
    n: int
    state: str

    @property
    def is_noisy(self) -> bool:
        """Whether single calls spread so much that the machine may have been busy with something else."""
        return self.mad_ms > NOISY * self.median_ms

    def document(self) -> dict[str, Any]:
        """As JSON values, rounded to 0.01 us."""
        return {key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(self).items()}


def measure(block: Block, settings: Settings) -> Sample:
    """Time `block(n)`, which makes n calls and returns the milliseconds of each."""
    spent, calls = _warm_up(block, settings)
    times: list[float] = []
    noise: list[float] = []
    state = "timeout"
    measured = 0.0
    while True:
        new = [float(ms) for ms in block(calls)]
        times += new
        measured += sum(new)
        noise.append(_mad(times))
        many = len(times) >= MOST_CALLS
        enough = many or (len(times) >= settings.min_n and measured >= settings.min_ms)
        low, high = median_interval(times)
        if enough and (high - low) / 2 <= settings.rel_ci * median(times):
            state = "converged"
            break
        if many or (enough and len(times) >= 4 * settings.min_n and _is_stable(noise)):
            state = "noisy"
            break
        if spent + measured >= settings.most_ms() and len(times) >= min(3, settings.min_n):
            break
    return summary(times, state)


def summary(times: Sequence[float], state: str) -> Sample:
    """The sample of some calls."""
    values = np.asarray(times, dtype=float)
    low, high = np.quantile(values, [0.05, 0.95])
    return Sample(median(times), float(values.mean()), _mad(times), float(low), float(high), len(values), state)


def median_interval(times: Sequence[float]) -> tuple[float, float]:
    """The median's 95 % interval from order statistics: no distribution is assumed. Endless below six calls."""
    n = len(times)
    if n < 6:
        return float("-inf"), float("inf")
    ordered = sorted(times)
    reach = 0.98 * sqrt(n)
    return ordered[max(0, int(n / 2 - reach) - 1)], ordered[min(n - 1, ceil(n / 2 + reach))]


def _warm_up(block: Block, settings: Settings) -> tuple[float, int]:
    """Call until two blocks agree; returns the milliseconds spent and how many calls a block should have."""
    spent, before = 0.0, None
    while True:
        times = [float(ms) for ms in block(settings.warm_n)]
        spent += sum(times)
        now = median(times)
        stable = before is not None and abs(now - before) <= STABLE * before
        if (stable and spent >= settings.warm_ms) or spent >= settings.most_ms() / 3:
            calls = int(max(settings.min_ms, 1.0) / max(now, 1e-4) / 4)
            return spent, max(1, min(calls, MOST_CALLS_PER_BLOCK, max(1, int(settings.most_ms() / 4 / max(now, 1e-4)))))
        before = now


def _mad(times: Sequence[float]) -> float:
    middle = median(times)
    return MAD_TO_SD * median([abs(ms - middle) for ms in times])


def _is_stable(noise: Sequence[float]) -> bool:
    """Whether the noise over the last three blocks is one number."""
    if len(noise) < 3 or noise[-1] == 0:
        return False
    return all(abs(before - noise[-1]) <= STABLE_NOISE * noise[-1] for before in noise[-3:-1])
