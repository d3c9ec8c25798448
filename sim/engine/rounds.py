"""Counts what rounds drafted, accepted and committed, as the engine's sampler does, and what the model would have done.

Full rounds come as arrays of positions and are counted in batches, so that a step pays for one list append.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from .records import SamplerCounts

_BATCH_STEPS = 1024


class RoundCounter:
    """Accumulates `SamplerCounts` over all replicas of one run.

    strides[r]: output positions of request r in the acceptance arrays; output_tokens[r]: those it can deliver (fewer
    where `max_model_len` cuts it).
    """

    def __init__(
        self, runs: AcceptanceRuns, drafts: int, strides: NDArray[np.int64], output_tokens: NDArray[np.int64]
    ) -> None:
        self._accepted = runs.accepted
        self._drafts = drafts
        self._counts = drafts > 0
        self._left = _tokens_left(runs, strides, output_tokens) if self._counts else None
        self._pending: list[NDArray[np.int64]] = []
        self._full_accepted = np.zeros(256, dtype=np.int64)
        self._full_inside = np.zeros(256, dtype=np.int64)
        self._full_cut = 0
        self.rounds = 0
        self._single = _SingleRounds(drafts)

    def full_rounds(self, began: NDArray[np.int64]) -> None:
        """Rounds with all their drafts, by the positions at which they began."""
        self.rounds += len(began)
        if self._counts:
            self._pending.append(began)
            if len(self._pending) >= _BATCH_STEPS:
                self._flush()

    def one_round(self, position: int, drafts: int, accepted: int, left: int) -> None:
        """One round with any number of drafts, `left` tokens before its request's end."""
        self.rounds += 1
        if self._counts:
            self._single.add(int(self._accepted[position]), drafts, accepted, left)

    def _flush(self) -> None:
        if not self._pending:
            return
        assert self._left is not None
        began = np.concatenate(self._pending)
        self._pending.clear()
        model = self._accepted[began]
        inside = np.minimum(model, self._left[began])
        self._full_accepted += np.bincount(model, minlength=256)
        self._full_inside += np.bincount(inside, minlength=256)
        accepted = np.minimum(model, self._drafts).astype(np.int64)
        self._full_cut += int(np.sum(accepted - np.minimum(accepted, inside)))

    def counts(self, committed_by_rounds: int) -> SamplerCounts:
        """The totals."""
        self._flush()
        single = self._single
        at_least = _at_least(self._full_accepted)
        inside = _at_least(self._full_inside)
        full = int(self._full_accepted.sum())
        accepted_at = at_least[1 : self._drafts + 1] + single.accepted_at
        return SamplerCounts(
            rounds=self.rounds,
            num_drafts=full + single.num_drafts,
            draft_tokens=full * self._drafts + single.draft_tokens,
            accepted_tokens=int(accepted_at.sum()),
            draft_tokens_cut=self._full_cut + single.cut,
            committed_by_rounds=committed_by_rounds,
            accepted_at=accepted_at,
            committed_at=inside[1 : self._drafts + 2] + single.committed_at,
        )


class _SingleRounds:
    """Rounds of rows that are scheduled one by one."""

    def __init__(self, drafts: int) -> None:
        self.num_drafts = 0
        self.draft_tokens = 0
        self.cut = 0
        self.accepted_at = np.zeros(drafts, dtype=np.int64)
        self.committed_at = np.zeros(drafts + 1, dtype=np.int64)

    def add(self, model: int, drafts: int, accepted: int, left: int) -> None:
        self.committed_at[: min(model, left)] += 1
        if drafts:
            self.num_drafts += 1
            self.draft_tokens += drafts
            self.accepted_at[:accepted] += 1
            self.cut += accepted - min(accepted, left)


def _at_least(histogram: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many values are at least i, for each i."""
    counts: NDArray[np.int64] = np.cumsum(histogram[::-1])[::-1]
    return counts


def _tokens_left(
    runs: AcceptanceRuns, strides: NDArray[np.int64], output_tokens: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Tokens from each output position to its request's end, capped where a round cannot tell the difference."""
    ends = np.repeat(runs.offsets + output_tokens, strides)
    left = np.clip(ends - np.arange(len(ends)), 0, 255)
    return left.astype(np.uint8)
