"""Fit the law of a look-up drafter to a log of its rounds, by simulating the log at the same draft length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .law import Floats, hardness_of, moved_odds, odds_against
from .logit_memory import even_normals
from .ngram_runs import Bytes, NgramDraws, NgramLaw, ngram_runs
from .round_sample import Ints, RoundSample, walked

FEWEST_TRIALS = 100
_POSITIONS = 250_000
_MOST_COPIES = 40
_PASSES = 9
_SEED = 6
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class NgramRates:
    """What a log at one draft length shows. Shapes as in `NgramLaw`, as probabilities."""

    match: Floats
    accepted: Floats
    proposed: Floats


def ngram_rates(sample: RoundSample, k: int, depth: int | None = None) -> NgramRates:
    """Matches after a match and after none, acceptance by draft position given a match, lengths of proposals.

    depth: how many draft positions to tell apart, deeper ones are pooled into the last; default, as far as 100 rounds.
    """
    match = sample.drafted > 0
    follows = np.ones(len(match), dtype=bool)
    follows[sample.first[:-1][sample.rounds > 0]] = False
    before = np.concatenate([[False], match[:-1]])
    after = [match[follows & (before == one)] for one in (True, False)]
    rates = np.array([one.mean() if len(one) else match.mean() for one in after])
    tried, held = sample.reached(k)
    depth = max(1, int(np.sum(tried >= FEWEST_TRIALS))) if depth is None else depth
    accepted = held[:depth] / np.maximum(tried[:depth], 1)
    accepted[-1] = held[depth - 1 :].sum() / max(1, int(tried[depth - 1 :].sum()))
    lengths = np.bincount(np.minimum(sample.drafted[match], k), minlength=k + 1)[1:]
    at_least = np.cumsum(lengths[::-1])[::-1] / max(1, int(lengths.sum()))
    return NgramRates(rates, accepted, at_least)


def fit_ngram(sample: RoundSample, k: int) -> NgramLaw:
    """The law whose log at k shows the sample's rates and spread of request means."""
    wanted = ngram_rates(sample, k)
    return moved_to(wanted, k, sample.output_tokens, spread=_spread(sample))


def moved_to(
    wanted: NgramRates, k: int, output_tokens: Ints, *, spread: float | None = None, sigma: float = 0.3
) -> NgramLaw:
    """The law whose log at k over outputs of these lengths shows the wanted rates.

    spread: variance of request means to reach; None keeps `sigma`.
    """
    match, odds = odds_against(wanted.match), odds_against(wanted.accepted)
    shares = wanted.proposed
    never_short = bool(np.all(shares > 0.9999))
    variance = sigma**2
    depth = len(wanted.accepted)
    for number in range(_PASSES):
        law = NgramLaw(
            (float(match[0]), float(match[1])),
            tuple(odds.tolist()),
            () if never_short else tuple(shares.tolist()),
            math.sqrt(variance),
            depth,
        )
        if number == _PASSES - 1:
            break
        seen_sample = lookup_log(law, output_tokens, k)
        seen = ngram_rates(seen_sample, k, depth)
        if spread is None and _close(seen, wanted):
            break
        match = moved_odds(match, wanted.match, seen.match)
        odds = moved_odds(odds, wanted.accepted, seen.accepted)
        if not never_short:
            shown = seen.proposed[: len(shares)]
            shares = np.minimum.accumulate(np.clip(shares * wanted.proposed / np.maximum(shown, 1e-9), 0, 1))
        if spread is not None:
            variance *= float(np.clip(spread / max(_spread(seen_sample), 1e-9), 0.5, 2.0))
            variance = min(variance, 9.0)
    return law


def _close(seen: NgramRates, wanted: NgramRates) -> bool:
    """Whether a simulated log shows the rates to a thousandth."""
    pairs = zip((seen.match, seen.accepted), (wanted.match, wanted.accepted), strict=True)
    return all(bool(np.all(np.abs(one - other) <= _TOLERANCE * other)) for one, other in pairs)


@dataclass(frozen=True, slots=True)
class LookupRuns:
    """Simulated runs of a look-up drafter by output position; starts: of output position 0, by sequence."""

    drafted: Bytes
    accepted: Bytes
    starts: Ints
    output_tokens: Ints

    def log(self, k: int) -> RoundSample:
        """The rounds that k drafts make of them."""
        return walked(self.accepted, self.drafted, self.starts, self.output_tokens, k)


def simulated_lookups(law: NgramLaw, output_tokens: Ints, seed: int = _SEED, positions: int = _POSITIONS) -> LookupRuns:
    """Runs of a law over outputs of these lengths, repeated to about so many positions."""
    copies = min(_MOST_COPIES, max(1, positions // max(1, int(output_tokens.sum()))))
    lengths = np.sort(np.tile(output_tokens, copies))
    starts = np.cumsum(lengths) - lengths
    rng = np.random.Generator(np.random.PCG64(seed))
    hardness = hardness_of(law.sigma * even_normals(len(lengths), rng))
    draws = NgramDraws(*rng.random((3, int(lengths.sum()))))
    drafted, accepted = ngram_runs(law, draws, hardness, starts, lengths)
    return LookupRuns(drafted, accepted, starts, lengths)


def lookup_log(
    law: NgramLaw, output_tokens: Ints, k: int, seed: int = _SEED, positions: int = _POSITIONS
) -> RoundSample:
    """The rounds that k drafts make of `simulated_lookups`."""
    return simulated_lookups(law, output_tokens, seed, positions).log(k)


def _spread(sample: RoundSample) -> float:
    means, _ = sample.request_means()
    return float(means.var()) if len(means) else 0.0
