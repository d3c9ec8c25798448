"""Counts what rounds drafted, accepted and committed, as the engine's sampler does, and what the model would have done.

Full rounds come as arrays of positions and are counted in batches, so that a step pays for one list append.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from .records import Ints, SamplerCounts
from .settled import parking_position

_BATCH_ROUNDS = 1 << 16


class RoundCounter:
    """Accumulates `SamplerCounts` over all replicas of one run.

    output_tokens[r]: tokens that request r can deliver, fewer than it asks for where `max_model_len` cuts it.
    """

    def __init__(self, runs: AcceptanceRuns, drafts: int, output_tokens: NDArray[np.int64]) -> None:
        self._accepted = runs.accepted
        self._drafts = drafts
        self._counts = drafts > 0
        self._codes = _codes(runs, drafts, output_tokens) if self._counts else None
        self._pending_rounds = 0
        self._pending: list[NDArray[np.int64]] = []
        self._full = np.zeros((drafts + 2) * (drafts + 3) + 1, dtype=np.int64)
        self.rounds = 0
        self._single = _SingleRounds(drafts)

    def full_rounds(self, began: NDArray[np.int64], count: int) -> None:
        """Rounds with all their drafts, by the positions at which they began; parked slots are not counted."""
        self.rounds += count
        if self._counts:
            self._pending.append(began)
            self._pending_rounds += count
            if self._pending_rounds >= _BATCH_ROUNDS:
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
            self._pending_rounds = 0

    def counts(self, committed_by_rounds: int) -> SamplerCounts:
        """The totals."""
        self._flush()
        single = self._single
        model, left, rounds = self._full_table()
        full = int(rounds.sum())
        drafts = np.minimum(model, self._drafts)
        positions = np.arange(1, self._drafts + 2)[:, None]
        accepted_at = (model >= positions[:-1]) @ rounds + single.accepted_at
        lengths = np.arange(self._drafts + 2)[:, None]
        return SamplerCounts(
            rounds=self.rounds,
            num_drafts=full + single.num_drafts,
            draft_tokens=full * self._drafts + single.draft_tokens,
            accepted_tokens=int(accepted_at.sum()),
            draft_tokens_cut=int((drafts - np.minimum(drafts, left)) @ rounds) + single.cut,
            committed_by_rounds=committed_by_rounds,
            accepted_at=accepted_at,
            committed_at=(np.minimum(model, left) >= positions) @ rounds + single.committed_at,
            delivered_at=np.minimum(np.minimum(model, lengths) + 1, left) @ rounds + single.delivered_at,
        )

    def _full_table(self) -> tuple[Ints, Ints, Ints]:
        """Full rounds by (accepted run of the model, tokens left), both capped as in `_codes`."""
        shape = (self._drafts + 2, self._drafts + 3)
        model, left = (index.ravel() for index in np.indices(shape))
        return model, left, self._full[:-1]


class _SingleRounds:
    """Rounds of rows that are scheduled one by one."""

    def __init__(self, drafts: int) -> None:
        self.num_drafts = 0
        self.draft_tokens = 0
        self.cut = 0
        self.accepted_at = np.zeros(drafts, dtype=np.int64)
        self.committed_at = np.zeros(drafts + 1, dtype=np.int64)
        self.delivered_at = np.zeros(drafts + 2, dtype=np.int64)
        self._lengths = np.arange(drafts + 2)

    def add(self, model: int, drafts: int, accepted: int, left: int) -> None:
        self.committed_at[: min(model, left)] += 1
        self.delivered_at += np.minimum(np.minimum(model, self._lengths) + 1, left)
        if drafts:
            self.num_drafts += 1
            self.draft_tokens += drafts
            self.accepted_at[:accepted] += 1
            self.cut += accepted - min(accepted, left)


def _codes(runs: AcceptanceRuns, drafts: int, output_tokens: NDArray[np.int64]) -> NDArray[np.unsignedinteger[Any]]:
    """One small number per output position: (accepted run up to drafts + 1, tokens left up to drafts + 2).

    The entries after the last position, for parked slots, have a code of their own.
    """
    most_left = drafts + 2
    levels = most_left + 1
    total = len(runs.accepted)
    parked = (drafts + 2) * levels
    codes = np.full(parking_position(runs, drafts) + 1, parked, dtype=np.min_scalar_type(parked))
    np.minimum(runs.accepted, drafts + 1, out=codes[:total], casting="unsafe")
    codes[:total] *= levels
    codes[:total] += most_left
    for left in range(1, most_left):  # only the last positions of a request have fewer tokens left
        requests = output_tokens >= left
        codes[(runs.offsets + output_tokens - left)[requests]] -= most_left - left
    return codes
