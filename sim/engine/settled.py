"""Settled rows: the leading decodes of the running list, kept as arrays so that a step costs a few numpy calls.

A row is settled while rule 1 can only give it its whole round: it decodes, holds a full set of drafts and ends well
below `max_model_len`. The batch is the same running list in the same order; the scheduler takes rows out of the arrays
(`release`) whenever a budget, a block or a preemption could treat them one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from .rows import Row

Ints = NDArray[np.int64]
_EMPTY: Ints = np.zeros(0, dtype=np.int64)
_NEVER = -(1 << 40)  # a row that has settled but not yet had a round as such


def next_positions(runs: AcceptanceRuns, drafts: int) -> Ints | None:
    """Where a round with all its drafts leads from each output position, uncut: p + min(accepted, k) + 1.

    None without speculation, where every round leads one further.
    """
    if not drafts:
        return None
    table = np.arange(1, len(runs.accepted) + 1, dtype=np.int64)
    table += np.minimum(runs.accepted, np.uint8(drafts))
    return table


class SettledRows:
    """Arrays over settled rows, in running order.

    flat: index of each row's output position in the acceptance arrays; end: the index at which it is finished; base:
    computed tokens minus flat; scheduled: flat when its last round was scheduled, and blocks_before: what it held when
    it settled, which together tell the blocks it holds between two steps. context: sum of computed tokens.
    """

    def __init__(self, next_flat: Ints | None, drafts: int, lookahead: int, block_size: int) -> None:
        self.rows: list[Row] = []
        self.flat = self.end = self.base = self.scheduled = self.blocks_before = _EMPTY
        self.context = 0
        self._next_flat = next_flat
        self._drafts = drafts
        self._most_commits = 1 + drafts
        self._base_sum = 0
        # A row needs ceil((computed + 1 + drafts + lookahead) / block_size) blocks for a round.
        self._block_reach = 1 + drafts + lookahead + block_size - 1
        self._block_size = block_size
        self._steps_without_finish = 0
        self._steps_with_use = 0
        self._rounds_run = 0

    def __len__(self) -> int:
        return len(self.rows)

    def blocks_bound(self) -> int:
        """An upper bound of `blocks_needed` from the running sum of contexts alone."""
        return (self.context + len(self.rows) * self._block_reach) // self._block_size

    def blocks_needed(self) -> int:
        """Blocks that all settled rows hold once their next round is scheduled."""
        return int(np.add.reduce((self.flat + self.base + self._block_reach) // self._block_size))

    def blocks_held(self) -> int:
        """Blocks that all settled rows hold between two steps: those of the round that was scheduled last."""
        return int(np.add.reduce(self._row_blocks_held()))

    def _row_blocks_held(self) -> Ints:
        last_round = (self.scheduled + self.base + self._block_reach) // self._block_size
        held: Ints = np.maximum(self.blocks_before, last_round)
        return held

    def any_can_use_drafts(self) -> bool:
        """Whether some row has more than one token to go, so that drafting on makes sense."""
        if self._steps_with_use > 0:
            return True
        if not self.rows:
            return False
        most_left = int(np.max(self.end - self.flat))
        self._steps_with_use = max(0, (most_left - 2) // self._most_commits)
        return most_left > 1

    def add(self, rows: list[Row]) -> None:
        """Append rows that have settled: each holds a full set of drafts and its next step is a round."""
        for row in rows:
            row.settled_round = self._rounds_run
        position = [row.flat_offset + row.known_tokens - row.prompt_tokens for row in rows]
        flat = np.array(position, dtype=np.int64)
        base = np.array([row.computed_tokens for row in rows], dtype=np.int64) - flat
        end = np.array([row.flat_offset + row.end_tokens - row.prompt_tokens for row in rows], dtype=np.int64)
        self.rows += rows
        self.flat = np.concatenate((self.flat, flat))
        self.base = np.concatenate((self.base, base))
        self.end = np.concatenate((self.end, end))
        self.scheduled = np.concatenate((self.scheduled, np.full(len(rows), _NEVER)))
        self.blocks_before = np.concatenate((self.blocks_before, [row.blocks for row in rows]))
        self._members_changed()

    def release(self) -> list[Row]:
        """Take all rows out of the arrays before a step's rounds are scheduled, and bring their fields up to date."""
        computed = (self.flat + self.base).tolist()
        for row, tokens, held in zip(self.rows, computed, self._row_blocks_held().tolist(), strict=True):
            self._account(row, tokens + 1)
            row.computed_tokens = tokens
            row.pending_drafts = self._drafts
            row.blocks = held
        released, self.rows = self.rows, []
        self.flat = self.base = self.end = self.scheduled = self.blocks_before = _EMPTY
        self._members_changed()
        return released

    def advance(self) -> tuple[Ints, int]:
        """Run one round of every row; returns the positions at which the rounds began and the tokens they would commit.

        Tokens past a row's end are counted here and taken back by `take_finished`.
        """
        began = self.flat
        flat = began + 1 if self._next_flat is None else self._next_flat[began]
        context = int(np.add.reduce(flat)) + self._base_sum
        committed = context - self.context
        self.scheduled = began
        self.flat = flat
        self.context = context
        self._rounds_run += 1
        self._steps_without_finish -= 1
        self._steps_with_use -= 1
        return began, committed

    def take_finished(self) -> list[tuple[Row, int]]:
        """Remove the rows that have reached their end; returns each with the tokens it overshot."""
        if self._steps_without_finish > 0 or not self.rows:
            return []
        left = self.end - self.flat
        finished = np.flatnonzero(left <= 0).tolist()
        if not finished:
            self._steps_without_finish = (int(np.min(left)) - 1) // self._most_commits
            return []
        taken = []
        for i in finished:
            row, overshoot = self.rows[i], -int(left[i])
            self._account(row, row.end_tokens + overshoot)
            row.draft_tokens_cut += max(0, overshoot - 1)  # the bonus token is no draft
            row.known_tokens = row.end_tokens
            row.pending_drafts = 0
            taken.append((row, overshoot))
        keep = left > 0
        for i in reversed(finished):
            del self.rows[i]
        self.flat = self.flat[keep]
        self.base = self.base[keep]
        self.end = self.end[keep]
        self.scheduled = self.scheduled[keep]
        self.blocks_before = self.blocks_before[keep]
        self._members_changed()
        return taken

    def _account(self, row: Row, known_tokens: int) -> None:
        """Book the rounds that a row ran here: each committed one token that is no draft."""
        rounds = self._rounds_run - row.settled_round
        row.rounds += rounds
        if self._drafts:
            row.num_drafts += rounds
            row.draft_tokens += rounds * self._drafts
            row.accepted_tokens += known_tokens - row.known_tokens - rounds
        row.known_tokens = known_tokens

    def _members_changed(self) -> None:
        self._base_sum = int(np.add.reduce(self.base))
        self.context = int(np.add.reduce(self.flat)) + self._base_sum
        self._steps_without_finish = 0
        self._steps_with_use = 0
