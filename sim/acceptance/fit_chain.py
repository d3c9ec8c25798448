"""Fit the logit law of a chain drafter to a log of its rounds.

The law is simulated on sequences of the recorded lengths and drafted lengths, and moved until its own log shows what
the recorded one shows: acceptance by draft position, the spread of request means, their link with output length, and
the covariance of rounds that are 1 to 32 apart. What short sequences do to such numbers, they do to both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .counts import count_accepted
from .law import AcceptanceLaw, Floats, LengthLink, hardness_of, moved_odds, odds_against
from .logit_memory import even_normals, stationary_states
from .round_sample import LAGS, Ints, RoundSample, walked

FEWEST_TRIALS = 100  # rounds behind the rate of a draft position
_PHIS = (0.5, 0.8, 0.9, 0.95, 0.98)
_POSITIONS = 300_000  # simulated, at least one copy of the log
_MOST_COPIES = 40  # of each sequence: more would only smooth what few sequences do not tell
_PASSES = 10
_SEED = 5
_LARGEST_SPREAD = 3.0


def fit_chain(sample: RoundSample, k: int, phis: tuple[float, ...] = _PHIS, window: int | None = None) -> AcceptanceLaw:
    """The law whose log at k looks like the sample.

    phis: correlations of memory to choose from. window: the first draft length of a stepping window (`walked`).
    """
    fit = _Fit(sample, k, window)
    best, least = fit.start(), math.inf
    found = best
    for phi in phis:
        found, misfit = fit.moved(replace(found, phi=phi))
        if misfit < least:
            best, least = found, misfit
    return best


def measured_rates(sample: RoundSample, k: int, depth: int | None = None) -> Floats:
    """Conditional acceptance by draft position; the last entry pools itself and all deeper positions.

    depth: entries; default: as many as 100 rounds tell.
    """
    tried, held = sample.reached(k)
    if depth is None:
        depth = max(1, int(np.sum(tried >= FEWEST_TRIALS)))
    rates = held[:depth] / np.maximum(tried[:depth], 1)
    rates[-1] = held[depth - 1 :].sum() / max(1, int(tried[depth - 1 :].sum()))
    return rates


@dataclass(frozen=True, slots=True)
class _Moments:
    """What the spread and the memory of a law are moved to show."""

    tokens_per_round: float
    mean_variance: float
    length_covariance: float
    covariances: Floats

    def misfit(self, other: _Moments) -> float:
        """Squared distance; the spread of request means counts as much as all covariances."""
        spread = self.mean_variance - other.mean_variance, self.length_covariance - other.length_covariance
        lags = float(np.sum((self.covariances - other.covariances) ** 2))
        tokens = self.tokens_per_round - other.tokens_per_round
        return lags + len(LAGS) * sum(one**2 for one in spread) + 4 * tokens**2


def _moments(sample: RoundSample) -> _Moments:
    means, rows = sample.request_means()
    logs = np.log(sample.output_tokens[rows])
    covariance = float(np.mean((means - means.mean()) * (logs - logs.mean()))) if len(rows) else 0.0
    variance = float(means.var()) if len(rows) else 0.0
    return _Moments(sample.tokens_per_round, variance, covariance, sample.autocovariances())


class SequenceWorld:
    """Sequences of recorded lengths, with draws that stay the same while a law moves."""

    def __init__(self, output_tokens: Ints, k: int, window: int | None = None, seed: int = _SEED) -> None:
        copies = min(_MOST_COPIES, max(1, _POSITIONS // max(1, int(output_tokens.sum()))))
        self.k, self.window = k, window
        self.lengths = np.sort(np.tile(output_tokens, copies))
        self.starts = np.cumsum(self.lengths) - self.lengths
        rng = np.random.Generator(np.random.PCG64(seed))
        self.effects = even_normals(len(self.lengths), rng)
        self.blocks = []
        for rows in np.array_split(np.arange(len(self.lengths)), max(1, len(self.lengths) // 256)):
            width = int(self.lengths[rows].max())
            uniforms = rng.random((len(rows), width))
            self.blocks.append((rows, uniforms, rng.standard_normal((len(rows), width + k))))

    def runs(self, law: AcceptanceLaw) -> NDArray[np.uint8]:
        """Accepted runs by output position, flattened."""
        shifts = law.shifts(self.effects, self.lengths)
        parts = []
        for rows, uniforms, normals in self.blocks:
            states = shifts[rows, None]
            if law.memory_sd:
                states = states + stationary_states(normals, law.phi, law.memory_sd)
            counts = count_accepted(law, uniforms, hardness_of(states), self.k)
            parts += [row[:length] for row, length in zip(counts, self.lengths[rows].tolist(), strict=True)]
        return np.concatenate(parts)

    def log(self, law: AcceptanceLaw, k: int | None = None) -> RoundSample:
        """The rounds at k drafts (default and most: this world's k)."""
        return walked(self.runs(law), None, self.starts, self.lengths, k or self.k, self.window)


class _Fit:
    """A law on its way to a log's moments."""

    def __init__(self, sample: RoundSample, k: int, window: int | None) -> None:
        self.k = k
        self.rates = measured_rates(sample, k)
        self.target = _moments(sample)
        logs = np.log(sample.output_tokens)
        self.median, self.log_sd = float(np.exp(logs.mean())), float(max(logs.std(), 1e-6))
        self.world = SequenceWorld(sample.output_tokens, k, window)

    def start(self) -> AcceptanceLaw:
        """Rates as they are, a middling spread."""
        link = LengthLink(0.0, self.median, self.log_sd)
        return AcceptanceLaw(tuple(odds_against(self.rates).tolist()), 0.4, 0.0, 0.4, len(self.rates), link)

    def moved(self, law: AcceptanceLaw) -> tuple[AcceptanceLaw, float]:
        """The law of this phi that comes closest, and how far it stays from the log."""
        slope = law.sigma * law.length_link.correlation if law.length_link else 0.0
        own, memory = law.sigma**2 - slope**2, law.memory_sd**2
        odds = np.array(law.odds_against)
        for number in range(_PASSES):
            sigma = min(math.sqrt(own + slope * slope), _LARGEST_SPREAD)
            correlation = float(np.clip(slope / sigma, -1, 1)) if sigma else 0.0
            link = LengthLink(correlation, self.median, self.log_sd)
            law = AcceptanceLaw(tuple(odds.tolist()), sigma, law.phi, math.sqrt(memory), len(self.rates), link)
            log = self.world.log(law)
            seen = _moments(log)
            if number == _PASSES - 1:
                break
            odds = moved_odds(odds, self.rates, measured_rates(log, self.k, len(self.rates)))
            gain = self._gain(odds)
            own = max(0.0, own + 0.7 * (self.target.mean_variance - seen.mean_variance) / gain**2)
            slope += 0.8 * (self.target.length_covariance - seen.length_covariance) / (gain * self.log_sd)
            memory = min(_LARGEST_SPREAD**2, memory * self._memory_factor(seen))
        return law, self.target.misfit(seen)

    def _memory_factor(self, seen: _Moments) -> float:
        """How much of the memory's variance to keep: near rounds are more alike than far ones because of it."""
        wanted, shown = (one.covariances[0] - one.covariances[-1] for one in (self.target, seen))
        return float(np.clip(wanted / max(shown, 1e-9), 0.5, 2)) if wanted > 0 else 0.0

    def _gain(self, odds: Floats) -> float:
        """How much a small shift of the logit moves the mean accepted drafts, at the centre."""
        held = np.pad(odds, (0, self.k - len(odds)), mode="edge")
        above, below = (float(np.cumprod(1 / (1 + held * math.exp(-shift))).sum()) for shift in (0.05, -0.05))
        return (above - below) / 0.1
