"""Look-up drafters (n-gram, suffix): matches come and go, and a match proposes the text that followed it before.

Along the output a fresh look-up finds a match or none, with a probability that depends on what the last one found. A
match proposes `proposed` tokens, of which a run is accepted; inside the run every look-up finds the same text again, so
that j tokens later the run is j tokens shorter. At the token behind the run the proposal fails, and the next look-up is
fresh. One shift of the logit a request moves matches and runs together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .law import Floats, probability

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

MOST_TOKENS = 255


@dataclass(frozen=True, slots=True)
class NgramLaw:
    """Odds at the centre of the spread over requests.

    odds_against_match: after a look-up that found a match, and after one that found none. odds_against: by draft
    position, given a match; the last one holds for all deeper ones. proposed: shares of matches that propose at least
    1, 2, .. tokens, the last one holds; () where proposals never end before k.
    """

    odds_against_match: tuple[float, float]
    odds_against: tuple[float, ...]
    proposed: tuple[float, ...] = ()
    sigma: float = 0.0
    measured_depth: int | None = None


@dataclass(frozen=True, slots=True)
class NgramDraws:
    """Uniforms by output position of all requests, flattened: for the match, the run and the proposal's length."""

    match: Floats
    run: Floats
    length: Floats


def ngram_runs(
    law: NgramLaw, draws: NgramDraws, hardness: Floats, starts: Ints, output_tokens: Ints
) -> tuple[Bytes, Bytes]:
    """(drafted, accepted) by output position; hardness and starts (of output position 0) by request.

    Each look-up uses the draws of its own position. Output position 0 belongs to the prefill: nothing is drafted there.
    """
    drafted = np.zeros(len(draws.match), dtype=np.uint8)
    accepted = np.zeros(len(draws.match), dtype=np.uint8)
    position = np.ones(len(starts), dtype=np.int64)
    had_match = np.zeros(len(starts), dtype=bool)
    running = np.flatnonzero(position < output_tokens)
    after_none, after_match = law.odds_against_match[1], law.odds_against_match[0]
    while len(running):
        at = starts[running] + position[running]
        hard = hardness[running]
        odds = np.where(had_match[running], after_match, after_none)
        match = draws.match[at] < _chance(odds, hard)
        had_match[running] = match
        rows, at, hard = running[match], at[match], hard[match]
        runs = _runs(law, draws.run[at], hard)
        lengths = _proposed(law, draws.length[at])
        left = np.minimum(runs + 1, output_tokens[rows] - position[rows])
        _fill(drafted, accepted, at, runs, lengths, left)
        position[running] += 1
        position[rows] += runs
        running = running[position[running] < output_tokens[running]]
    return drafted, accepted


def _fill(drafted: Bytes, accepted: Bytes, at: Ints, runs: Ints, lengths: Ints, left: Ints) -> None:
    """Write the positions at, at + 1, .. of each run, `left` of them."""
    ends = np.cumsum(left)
    ahead = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - left, left)
    places = np.repeat(at, left) + ahead
    proposed = np.repeat(lengths, left)
    drafted[places] = proposed
    accepted[places] = np.minimum(np.repeat(runs, left) - ahead, proposed)


def _chance(odds: Floats, hardness: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(odds == 0, 1.0, 1 / (1 + odds * hardness))


def _runs(law: NgramLaw, uniforms: Floats, hardness: Floats) -> Ints:
    """How many survival probabilities lie above each uniform, at most 255."""
    runs = np.zeros(len(uniforms), dtype=np.int64)
    alive = np.arange(len(uniforms))
    survival = np.ones(len(uniforms))
    for i in range(MOST_TOKENS):
        survival *= probability(law.odds_against[min(i, len(law.odds_against) - 1)], hardness[alive])
        on = uniforms[alive] < survival
        alive, survival = alive[on], survival[on]
        if not len(alive):
            break
        runs[alive] += 1
    return runs


def _proposed(law: NgramLaw, uniforms: Floats) -> Ints:
    """Length of each proposal; beyond the measured shares it is as long as wanted."""
    if not law.proposed:
        return np.full(len(uniforms), MOST_TOKENS)
    shares = np.array(law.proposed)
    lengths = np.searchsorted(-shares, -uniforms, side="left")  # shares fall: how many of them lie above the uniform
    return np.where(lengths == len(shares), MOST_TOKENS, np.maximum(lengths, 1))
