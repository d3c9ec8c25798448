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
    computed tokens minus flat. context: sum of computed tokens. `row.blocks` is what a row held when it settled.
    """

    def __init__(self, next_flat: Ints | None, drafts: int, lookahead: int, block_size: int) -> None:
        self.rows: list[Row] = []
        self.context = 0
        self._next_flat = next_flat
        self._drafts = drafts
        self._most_commits = 1 + drafts
        # A row needs ceil((computed + 1 + drafts + lookahead) / block_size) blocks for a round.
        self._block_reach = 1 + drafts + lookahead + block_size - 1
        self._block_size = block_size
        self._rounds_run = 0
        self._clear()

    def _clear(self) -> None:
        self.flat: Ints = np.zeros(0, dtype=np.int64)
        self._fixed: Ints = np.zeros((2, 0), dtype=np.int64)
        self.base, self.end = self._fixed
        self.context = self._base_sum = 0
        self._last_began: Ints = self.flat
        # Rounds that can be run before some row may be finished, and before every row may be at its last token.
        self._no_finish_before = self._rounds_run
        self._useful_before = self._rounds_run

    def __len__(self) -> int:
        return len(self.rows)

    # --- blocks -------------------------------------------------------------------------------------------------------

    def blocks_bound(self) -> int:
        """An upper bound of `blocks_needed` from the running sum of contexts alone."""
        return (self.context + len(self.rows) * self._block_reach) // self._block_size

    def blocks_needed(self) -> int:
        """Blocks that all settled rows hold once their next round is scheduled."""
        return int(np.add.reduce((self.flat + self.base + self._block_reach) // self._block_size))

    def blocks_held(self) -> list[int]:
        """Blocks that each row holds between two steps: those of its last round, or of before it settled."""
        last = (
            (self._last_began + self.base[: len(self._last_began)] + self._block_reach) // self._block_size
        ).tolist()
        last += [0] * (len(self.rows) - len(last))
        return [max(row.blocks, blocks) for row, blocks in zip(self.rows, last, strict=True)]

    # --- membership ---------------------------------------------------------------------------------------------------

    def add(self, rows: list[Row]) -> None:
        """Append rows that have settled: each holds a full set of drafts and its next step is a round."""
        flat, fixed = [], []
        for row in rows:
            position = row.flat_offset + row.known_tokens - row.prompt_tokens
            base = row.computed_tokens - position
            left = row.end_tokens - row.known_tokens
            flat.append(position)
            fixed.append((base, position + left))
            row.settled_round = self._rounds_run
            self.context += row.computed_tokens
            self._base_sum += base
            self._may_finish_in((left - 1) // self._most_commits + 1)
        self.rows += rows
        self.flat = np.concatenate((self.flat, np.array(flat)))
        self._fixed = np.concatenate((self._fixed, np.array(fixed).T), axis=1)
        self.base, self.end = self._fixed

    def release(self) -> list[Row]:
        """Take all rows out of the arrays before a step's rounds are scheduled, and bring their fields up to date."""
        held = self.blocks_held()
        for row, computed, blocks in zip(self.rows, (self.flat + self.base).tolist(), held, strict=True):
            self._account(row, computed + 1)
            row.computed_tokens = computed
            row.pending_drafts = self._drafts
            row.blocks = blocks
        released, self.rows = self.rows, []
        self._clear()
        return released

    def take_finished(self) -> list[tuple[Row, int]]:
        """Remove the rows that have reached their end; returns each with the tokens it overshot."""
        if self._rounds_run < self._no_finish_before or not self.rows:
            return []
        left = self.end - self.flat
        least = int(left.min())
        if least > 0:
            self._no_finish_before = self._rounds_run + (least - 1) // self._most_commits + 1
            return []
        keep = left > 0
        taken = []
        for i in reversed((~keep).nonzero()[0].tolist()):
            row, overshoot = self.rows.pop(i), -int(left[i])
            self.context -= int(self.flat[i] + self.base[i])
            self._base_sum -= int(self.base[i])
            self._account(row, row.end_tokens + overshoot)
            row.draft_tokens_cut += max(0, overshoot - 1)  # the bonus token is no draft
            row.known_tokens = row.end_tokens
            row.pending_drafts = 0
            taken.append((row, overshoot))
        self.flat = self.flat[keep]
        self._last_began = self._last_began[keep]
        self._fixed = self._fixed[:, keep]
        self.base, self.end = self._fixed
        taken.reverse()
        return taken

    def _may_finish_in(self, rounds: int) -> None:
        self._no_finish_before = min(self._no_finish_before, self._rounds_run + rounds)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def advance(self) -> tuple[Ints, int]:
        """Run one round of every row; returns the positions at which the rounds began and the tokens they would commit.

        Tokens past a row's end are counted here and taken back by `take_finished`.
        """
        began = self.flat
        flat = began + 1 if self._next_flat is None else self._next_flat[began]
        context = int(np.add.reduce(flat)) + self._base_sum
        committed = context - self.context
        self.flat = flat
        self.context = context
        self._last_began = began
        self._rounds_run += 1
        return began, committed

    def any_can_use_drafts(self) -> bool:
        """Whether some row has more than one token to go, so that drafting on makes sense."""
        if self._rounds_run < self._useful_before:
            return True
        if not self.rows:
            return False
        # The row with the most left cannot be at its last token for so many rounds, whoever else comes or goes.
        most_left = int((self.end - self.flat).max())
        self._useful_before = self._rounds_run + (most_left - 2) // self._most_commits + 1
        return most_left > 1

    def _account(self, row: Row, known_tokens: int) -> None:
        """Book the rounds that a row ran here: each committed one token that is no draft."""
        rounds = self._rounds_run - row.settled_round
        row.rounds += rounds
        if self._drafts:
            row.num_drafts += rounds
            row.draft_tokens += rounds * self._drafts
            row.accepted_tokens += known_tokens - row.known_tokens - rounds
        row.known_tokens = known_tokens
