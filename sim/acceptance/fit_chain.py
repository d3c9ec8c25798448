"""Fit the logit law of a chain drafter to a log of its rounds.

The law is simulated on sequences of the recorded lengths and drafted lengths, and moved until its own log shows what
the recorded one shows: acceptance by draft position, the spread of request means, their link with output length, and the
covariance of rounds that are 1 to 32 apart. What short sequences do to such numbers, they do to both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .law import AcceptanceLaw, Floats, LengthLink, hardness_of, odds_against, probability
from .logit_memory import stationary_states
from .round_sample import Ints, RoundSample, walked

FEWEST_TRIALS = 100  # rounds behind the rate of a draft position
_PHIS = (0.5, 0.8, 0.9, 0.95, 0.98)
_POSITIONS = 600_000  # simulated, at least one copy of the log
_PASSES = 12
_SEED = 5
_LARGEST_SPREAD = 3.0


@dataclass(frozen=True, slots=True)
class ChainFit:
    """The law, and what of the log it was moved to show."""

    law: AcceptanceLaw
    k: int


def fit_chain(sample: RoundSample, k: int, phis: tuple[float, ...] = _PHIS) -> ChainFit:
    """The law whose log at k looks like the sample; phis: correlations of memory to choose from."""
    world = _World(sample, k)
    best, least = world.start(), math.inf
    found = best
    for phi in phis:
        found, misfit = world.fitted(replace(found, phi=phi))
        if misfit < least:
            best, least = found, misfit
    return ChainFit(best, k)


def measured_rates(sample: RoundSample, k: int) -> Floats:
    """Conditional acceptance by draft position, as far as 100 rounds tell it; deeper ones are pooled into the last."""
    tried, held = sample.reached(k)
    depth = max(1, int(np.sum(tried >= FEWEST_TRIALS)))
    rates = held[:depth] / np.maximum(tried[:depth], 1)
    if depth < k:
        rates[-1] = held[depth - 1 :].sum() / max(1, tried[depth - 1 :].sum())
    return rates


class _World:
    """Sequences of the recorded lengths with draws that stay the same while the law moves."""

    def __init__(self, sample: RoundSample, k: int) -> None:
        self.k = k
        self.rates = measured_rates(sample, k)
        self.target = _moments(sample)
        logs = np.log(sample.output_tokens)
        self.median, self.log_sd = float(np.exp(logs.mean())), float(max(logs.std(), 1e-6))
        copies = max(1, _POSITIONS // max(1, int(sample.output_tokens.sum())))
        self.lengths = np.sort(np.tile(sample.output_tokens, copies))
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        rng = np.random.Generator(np.random.PCG64(_SEED))
        self.effects = rng.standard_normal(len(self.lengths))
        self.blocks = []
        for rows in np.array_split(np.arange(len(self.lengths)), max(1, len(self.lengths) // 256)):
            width = int(self.lengths[rows].max())
            uniforms = rng.random((len(rows), width))
            self.blocks.append((rows, uniforms, rng.standard_normal((len(rows), width + k))))
        self.gain = 1.0

    def start(self) -> AcceptanceLaw:
        """Rates as they are, a middling spread."""
        link = LengthLink(0.0, self.median, self.log_sd)
        return AcceptanceLaw(tuple(odds_against(self.rates).tolist()), 0.4, 0.0, 0.4, len(self.rates), link)

    def simulated(self, law: AcceptanceLaw) -> RoundSample:
        shifts = law.shifts(self.effects, self.lengths)
        parts = []
        for rows, uniforms, normals in self.blocks:
            states = shifts[rows, None] + stationary_states(normals, law.phi, law.memory_sd)
            hardness = hardness_of(states)
            width = uniforms.shape[1]
            survival = np.ones_like(uniforms)
            counts = np.zeros(uniforms.shape, dtype=np.uint8)
            for i in range(self.k):
                survival *= probability(law.odds_at(i), hardness[:, i : i + width])
                counts += uniforms < survival
            parts += [row[:length] for row, length in zip(counts, self.lengths[rows].tolist(), strict=True)]
        return walked(np.concatenate(parts), None, self.starts, self.lengths, self.k)

    def fitted(self, law: AcceptanceLaw) -> tuple[AcceptanceLaw, float]:
        """The law of this phi, and how far its covariances stay from the log's."""
        own, slope, memory = 0.4**2, 0.0, 0.4**2
        if law.length_link:
            slope = law.sigma * law.length_link.correlation
            own, memory = law.sigma**2 - slope**2, law.memory_sd**2
        odds = np.array(law.odds_against)
        wanted = odds_against(self.rates)
        misfit = math.inf
        for number in range(_PASSES):
            sigma = min(math.sqrt(own + slope * slope), _LARGEST_SPREAD)
            link = LengthLink(slope / sigma if sigma else 0.0, self.median, self.log_sd)
            law = AcceptanceLaw(tuple(odds.tolist()), sigma, law.phi, math.sqrt(memory), len(self.rates), link)
            seen_sample = self.simulated(law)
            seen = _moments(seen_sample)
            misfit = float(np.sum((seen.covariances - self.target.covariances) ** 2))
            if number == _PASSES - 1:
                break
            free = (wanted > 0) & np.isfinite(wanted)
            seen_odds = odds_against(measured_like(seen_sample, self.k, len(self.rates)))
            ratio = np.where(
                free & (seen_odds > 0) & np.isfinite(seen_odds), wanted / np.where(seen_odds > 0, seen_odds, 1), 1
            )
            odds = np.where(free, odds * ratio, odds)
            gain = self._gain(odds)
            own = max(0.0, own + 0.7 * (self.target.mean_variance - seen.mean_variance) / gain**2)
            slope += 0.8 * (self.target.length_covariance - seen.length_covariance) / (gain * self.log_sd)
            short = seen.covariances[0] - seen.covariances[-1], self.target.covariances[0] - self.target.covariances[-1]
            if short[1] <= 0:
                memory = 0.0
            else:
                memory = min(_LARGEST_SPREAD**2, memory * float(np.clip(short[1] / max(short[0], 1e-9), 0.5, 2)))
        return law, misfit

    def _gain(self, odds: Floats) -> float:
        """How much a small shift of the logit moves the mean accepted drafts, at the centre."""

        def mean(shift: float) -> float:
            held = np.pad(odds, (0, self.k - len(odds)), mode="edge")
            return float(np.cumprod(1 / (1 + held * math.exp(-shift))).sum())

        return (mean(0.05) - mean(-0.05)) / 0.1


def measured_like(sample: RoundSample, k: int, depth: int) -> Floats:
    tried, held = sample.reached(k)
    rates = held[:depth] / np.maximum(tried[:depth], 1)
    if depth < k:
        rates[-1] = held[depth - 1 :].sum() / max(1, tried[depth - 1 :].sum())
    return rates


@dataclass(frozen=True, slots=True)
class _Moments:
    mean_variance: float
    length_covariance: float
    covariances: Floats


def _moments(sample: RoundSample) -> _Moments:
    means, rows = sample.request_means()
    logs = np.log(sample.output_tokens[rows])
    covariance = float(np.mean((means - means.mean()) * (logs - logs.mean())))
    return _Moments(float(means.var()), covariance, sample.autocovariances())
