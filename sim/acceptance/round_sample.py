"""Rounds of many sequences as flat arrays, real or simulated, and the numbers that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .law import Floats

Ints = NDArray[np.int64]
RunArray = NDArray[np.uint8] | NDArray[np.int64]

LAGS = (1, 2, 4, 8, 16, 32)
FEWEST_ROUNDS = 5  # of a sequence whose mean says something
_HORIZON_TOKENS = 128


@dataclass(frozen=True, slots=True)
class RoundSample:
    """Rounds in order, sequence after sequence, without the last one of each, which the end of text cuts.

    accepted, drafted: by round. first: where each sequence starts, and one past the last. output_tokens: by sequence.
    """

    accepted: Ints
    drafted: Ints
    first: Ints
    output_tokens: Ints

    @property
    def rounds(self) -> Ints:
        """Rounds of each sequence."""
        return np.diff(self.first)

    def reached(self, depth: int) -> tuple[Ints, Ints]:
        """By draft position: rounds that drafted it with all before it accepted, and rounds that accepted it."""
        positions = np.arange(depth)[:, None]
        step = max(1, (1 << 22) // depth)
        tried, held = np.zeros(depth, dtype=np.int64), np.zeros(depth, dtype=np.int64)
        for start in range(0, len(self.accepted), step):
            accepted, drafted = self.accepted[start : start + step], self.drafted[start : start + step]
            tried += np.sum((accepted >= positions) & (drafted > positions), axis=1)
            held += np.sum(accepted > positions, axis=1)
        return tried, held

    @property
    def tokens_per_round(self) -> float:
        """Mean accepted drafts and the bonus token."""
        return 1 + float(self.accepted.mean())

    def request_means(self) -> tuple[Floats, Ints]:
        """Mean accepted drafts of the sequences with at least 5 rounds, and which ones they are."""
        enough = np.flatnonzero(self.rounds >= FEWEST_ROUNDS)
        sums = np.concatenate([[0], np.cumsum(self.accepted)])
        totals = sums[self.first[1:]] - sums[self.first[:-1]]
        return totals[enough] / self.rounds[enough], enough

    def autocovariances(self) -> Floats:
        """Covariance of the accepted drafts of two rounds of a sequence that are 1, 2, 4, .. 32 rounds apart."""
        deviations = self.accepted - self.accepted.mean()
        ends = np.repeat(self.first[1:], self.rounds)
        covariances = []
        for lag in LAGS:
            early = np.flatnonzero(np.arange(len(ends)) + lag < ends)
            covariances.append(float(np.mean(deviations[early] * deviations[early + lag])) if len(early) else 0.0)
        return np.array(covariances)

    def rounds_to_commit(self, tokens: int = _HORIZON_TOKENS) -> Ints:
        """Rounds that the sequences with so many tokens need for them, from their first round on."""
        committed = np.cumsum(self.accepted + 1)
        before = np.concatenate([[0], committed])[self.first[:-1]]
        enough = np.flatnonzero((self.rounds > 0) & (committed[self.first[1:] - 1] - before >= tokens))
        return np.searchsorted(committed, before[enough] + tokens) + 1 - self.first[:-1][enough]


def sample_of(accepted: Sequence[Ints], drafted: Sequence[Ints], output_tokens: Sequence[int]) -> RoundSample:
    """A sample from logged rounds, one array a sequence; the last round of each is left out."""
    kept = [one[:-1] for one in accepted]
    first = np.concatenate([[0], np.cumsum([len(one) for one in kept])]).astype(np.int64)
    together = np.concatenate([*kept, np.zeros(0, dtype=np.int64)])
    drafts = np.concatenate([*(one[:-1] for one in drafted), np.zeros(0, dtype=np.int64)])
    return RoundSample(together, drafts, first, np.array(output_tokens, dtype=np.int64))


def stepping_window(sample: RoundSample) -> int | None:
    """The first draft length of a log whose drafter then adds 2 after a fully accepted round and else takes 1 off.

    None where the draft lengths follow another rule.
    """
    starts = sample.first[:-1][sample.rounds > 0]
    first = np.unique(sample.drafted[starts])
    follows = np.ones(len(sample.drafted), dtype=bool)
    follows[starts] = False
    now, before = np.flatnonzero(follows), np.flatnonzero(follows) - 1
    next_window = _stepped(sample.drafted[before], sample.accepted[before])
    if len(first) != 1 or not len(now) or np.any(next_window != sample.drafted[now]):
        return None
    return int(first[0])


def _stepped(window: Ints, accepted: Ints) -> Ints:
    return np.where(accepted >= window, window + 2, np.maximum(window - 1, 1))


def walked(
    accepted: RunArray, drafted: RunArray | None, starts: Ints, output_tokens: Ints, k: int, window: int | None = None
) -> RoundSample:
    """The rounds that k drafts make of runs by output position; starts[r] is output position 0 of sequence r.

    window: the drafter's first draft length, stepped as in `stepping_window` and never above k. The last round of each
    sequence, which its end may cut, is left out.
    """
    count = len(starts)
    windows = np.full(count, k if window is None else window)
    position = np.ones(count, dtype=np.int64)
    running = np.flatnonzero(position < output_tokens)
    rows: list[Ints] = []
    runs: list[Ints] = []
    drafts: list[Ints] = []
    while len(running):
        at = starts[running] + position[running]
        drafted_here = np.minimum(windows[running], k)
        if drafted is not None:
            drafted_here = np.minimum(drafted_here, drafted[at].astype(np.int64))
        accepted_here = np.minimum(accepted[at].astype(np.int64), drafted_here)
        position[running] += accepted_here + 1
        if window is not None:
            windows[running] = _stepped(windows[running], accepted_here)
        inside = position[running] < output_tokens[running]
        running = running[inside]
        rows.append(running)
        runs.append(accepted_here[inside])
        drafts.append(drafted_here[inside])
    row = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
    order = np.argsort(row, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))]).astype(np.int64)
    empty = np.zeros(0, dtype=np.int64)
    return RoundSample(
        np.concatenate([*runs, empty])[order], np.concatenate([*drafts, empty])[order], first, output_tokens
    )
