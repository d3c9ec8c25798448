"""Counts what rounds drafted, accepted and committed, as the engine's sampler does, and what the model would have done.

Full rounds come as arrays of positions and are counted in batches, so that a step pays for one list append.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from .records import Ints, SamplerCounts
from .round_tables import parking_position

_BATCH_ROUNDS = 1 << 16


class RoundCounter:
    """Accumulates `SamplerCounts` over all replicas of one run.

    drafts: the most that a round verifies. output_tokens[r]: tokens that request r can deliver, fewer than it asks for
    where `max_model_len` cuts it.
    """

    def __init__(self, runs: AcceptanceRuns, drafts: int, output_tokens: NDArray[np.int64]) -> None:
        self._accepted = runs.accepted
        self._drafted = runs.drafted
        self._drafts = drafts
        self._counts = drafts > 0
        self._codes = _codes(runs, drafts, output_tokens) if self._counts else None
        # Accepted run of the model up to K + 1, drafts proposed up to K + 1 (if that varies), tokens left up to K + 2.
        self._shape = (drafts + 2, drafts + 2 if runs.drafted is not None else 1, drafts + 3)
        self._pending_rounds = 0
        self._pending: dict[int, list[NDArray[np.int64]]] = {}
        self._full: dict[int, Ints] = {}
        self.rounds = 0
        self._single = _SingleRounds(drafts)

    def full_rounds(self, began: NDArray[np.int64], count: int, drafts: int) -> None:
        """Rounds with all their drafts, at most `drafts` each, by the positions at which they began.

        Parked slots are not counted.
        """
        self.rounds += count
        if self._counts:
            self._pending.setdefault(drafts, []).append(began)
            self._pending_rounds += count
            if self._pending_rounds >= _BATCH_ROUNDS:
                self._flush()

    def one_round(self, position: int, drafts: int, accepted: int, left: int) -> None:
        """One round with any number of drafts, `left` tokens before its request's end."""
        self.rounds += 1
        if self._counts:
            proposed = self._drafts + 1 if self._drafted is None else int(self._drafted[position])
            self._single.add(int(self._accepted[position]), proposed, drafts, accepted, left)

    def placeholders(self, drafts: int) -> None:
        """Placeholder drafts beside a prompt's last token: counted as drafts, all rejected, and no round."""
        self._single.num_drafts += 1
        self._single.draft_tokens += drafts

    def _flush(self) -> None:
        if self._codes is None:
            return
        size = int(np.prod(self._shape)) + 1
        for drafts, began in self._pending.items():
            counted = np.bincount(self._codes[np.concatenate(began)], minlength=size)
            self._full[drafts] = self._full.get(drafts, 0) + counted
        self._pending.clear()
        self._pending_rounds = 0

    def counts(self, committed_by_rounds: int) -> SamplerCounts:
        """The totals."""
        self._flush()
        single = self._single
        num_drafts, draft_tokens = single.num_drafts, single.draft_tokens
        accepted_at, kept_at = single.accepted_at.copy(), single.kept_at.copy()
        committed_at, delivered_at = single.committed_at.copy(), single.delivered_at.copy()
        proposed_at = single.proposed_at.copy()
        model, proposed, left = (index.ravel() for index in np.indices(self._shape))
        positions = np.arange(1, self._drafts + 2)[:, None]
        lengths = np.arange(self._drafts + 2)[:, None]
        for most, table in sorted(self._full.items()):
            rounds = table[:-1]
            would = proposed if self._shape[1] > 1 else np.full(len(rounds), self._drafts + 1)
            drafts = np.minimum(would, most)
            accepted = np.minimum(model, drafts)
            num_drafts += int(rounds[drafts > 0].sum())
            draft_tokens += int(drafts @ rounds)
            accepted_at += (accepted >= positions[:-1]) @ rounds
            kept_at += (np.minimum(accepted, left) >= positions[:-1]) @ rounds
            proposed_at += (would >= positions) @ rounds
            committed_at += (np.minimum(model, left) >= positions) @ rounds
            delivered_at += np.minimum(np.minimum(model, lengths) + 1, left) @ rounds
        return SamplerCounts(
            rounds=self.rounds,
            num_drafts=num_drafts,
            draft_tokens=draft_tokens,
            accepted_tokens=int(accepted_at.sum()),
            draft_tokens_cut=int(accepted_at.sum() - kept_at.sum()),
            committed_by_rounds=committed_by_rounds,
            accepted_at=accepted_at,
            kept_at=kept_at,
            proposed_at=proposed_at,
            committed_at=committed_at,
            delivered_at=delivered_at,
        )


class _SingleRounds:
    """Rounds of rows that are scheduled one by one."""

    def __init__(self, drafts: int) -> None:
        self.num_drafts = 0
        self.draft_tokens = 0
        self.accepted_at = np.zeros(drafts, dtype=np.int64)
        self.kept_at = np.zeros(drafts, dtype=np.int64)
        self.proposed_at = np.zeros(drafts + 1, dtype=np.int64)
        self.committed_at = np.zeros(drafts + 1, dtype=np.int64)
        self.delivered_at = np.zeros(drafts + 2, dtype=np.int64)
        self._lengths = np.arange(drafts + 2)

    def add(self, model: int, proposed: int, drafts: int, accepted: int, left: int) -> None:
        self.proposed_at[:proposed] += 1
        self.committed_at[: min(model, left)] += 1
        self.delivered_at += np.minimum(np.minimum(model, self._lengths) + 1, left)
        if drafts:
            self.num_drafts += 1
            self.draft_tokens += drafts
            self.accepted_at[:accepted] += 1
            self.kept_at[: min(accepted, left)] += 1


def _codes(runs: AcceptanceRuns, drafts: int, output_tokens: NDArray[np.int64]) -> NDArray[np.unsignedinteger[Any]]:
    """One number per output position: (accepted run up to K + 1, proposed up to K + 1, tokens left up to K + 2).

    Drafts are no part of it where the drafter always proposes k. The entries after the last position, for parked slots,
    have a code of their own.
    """
    most_left = drafts + 2
    levels = most_left + 1
    total = len(runs.accepted)
    parked = (drafts + 2) * levels * (1 if runs.drafted is None else drafts + 2)
    codes = np.full(parking_position(runs, drafts) + 1, parked, dtype=np.min_scalar_type(parked))
    np.minimum(runs.accepted, drafts + 1, out=codes[:total], casting="unsafe")
    if runs.drafted is not None:
        codes[:total] *= drafts + 2
        codes[:total] += np.minimum(runs.drafted, drafts + 1)
    codes[:total] *= levels
    codes[:total] += most_left
    for left in range(1, most_left):  # only the last positions of a request have fewer tokens left
        requests = output_tokens >= left
        codes[(runs.offsets + output_tokens - left)[requests]] -= most_left - left
    return codes
