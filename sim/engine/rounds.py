"""Counts what rounds drafted, accepted and committed, as the engine's sampler does, and what the model would have done.

Full rounds come as arrays of positions and are counted in batches, so that a step pays for one list append.
"""

from __future__ import annotations

from typing import Any

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
        self._codes = _codes(runs, drafts, strides, output_tokens) if self._counts else None
        self._pending: list[NDArray[np.int64]] = []
        self._full = np.zeros((drafts + 2) ** 2 + 1, dtype=np.int64)
        self.rounds = 0
        self._single = _SingleRounds(drafts)

    def full_rounds(self, began: NDArray[np.int64], count: int) -> None:
        """Rounds with all their drafts, by the positions at which they began; parked slots are not counted."""
        self.rounds += count
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
        if self._pending and self._codes is not None:
            codes = self._codes[np.concatenate(self._pending)]
            self._full += np.bincount(codes, minlength=len(self._full))
            self._pending.clear()

    def counts(self, committed_by_rounds: int) -> SamplerCounts:
        """The totals."""
        self._flush()
        single = self._single
        levels = np.arange(self._drafts + 2)
        table = self._full[:-1].reshape(len(levels), len(levels))  # [the model accepts, of these inside the output]
        full = int(table.sum())
        accepted_at = _at_least(table.sum(axis=1))[1:-1] + single.accepted_at
        accepted = np.minimum(levels, self._drafts)[:, None]
        cut = int(np.sum(table * (accepted - np.minimum(accepted, levels))))
        return SamplerCounts(
            rounds=self.rounds,
            num_drafts=full + single.num_drafts,
            draft_tokens=full * self._drafts + single.draft_tokens,
            accepted_tokens=int(accepted_at.sum()),
            draft_tokens_cut=cut + single.cut,
            committed_by_rounds=committed_by_rounds,
            accepted_at=accepted_at,
            committed_at=_at_least(table.sum(axis=0))[1:] + single.committed_at,
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


def _codes(
    runs: AcceptanceRuns, drafts: int, strides: NDArray[np.int64], output_tokens: NDArray[np.int64]
) -> NDArray[np.unsignedinteger[Any]]:
    """One small number per output position: (accepted run, part of it inside the output), both up to drafts + 1.

    One more entry, for parked slots, has a code of its own.
    """
    levels = drafts + 2
    total = len(runs.accepted)
    ends = np.repeat(runs.offsets + output_tokens, strides)
    left = np.clip(ends - np.arange(total), 0, levels - 1)
    model = np.minimum(runs.accepted, levels - 1).astype(np.int64)
    codes = np.empty(total + 1, dtype=np.min_scalar_type(levels**2))
    codes[:total] = model * levels + np.minimum(model, left)
    codes[total] = levels**2
    return codes
