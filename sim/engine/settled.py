"""Settled rows: the leading decodes of the running list, kept as arrays so that a step costs a few numpy calls.

A row is settled while rule 1 can only give it its whole round: it decodes, holds a full set of drafts and ends well
below `max_model_len`. The batch is the same running list in the same order; the scheduler takes rows out of the arrays
(`release`) whenever a budget, a block or a preemption could treat them one by one.

A row that leaves keeps its slot, parked at a position that leads to itself; slots are packed when many are parked. So
coming and going costs a few element writes. Arrays that were handed out are never written again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .round_tables import RoundTables
from .rows import Row
from .settings import UNLIMITED

Ints = NDArray[np.int64]
_NEVER = 1 << 60
_SPARE_SLOTS = 16


class SettledRows:
    """Arrays over slots, in running order.

    flat: index of each row's output position in the acceptance arrays (`parked` where the slot is empty); base:
    computed tokens minus flat; end: the index at which the row is finished. context: sum of computed tokens.
    `row.blocks` is what a row held when it settled. An empty slot's base makes its blocks come out as zero.
    drafts: what every row verifies in its next round.
    """

    varying = False

    def __init__(self, tables: RoundTables, drafts: int, lookahead: int, block_size: int) -> None:
        self.count = 0
        self.drafts = drafts
        self.parked = tables.parked
        self._next_flat = tables.after(drafts)
        self._most_drafts = drafts
        self._most_commits = 1 + drafts
        # A row needs ceil((computed + 1 + drafts + lookahead) / block_size) blocks for a round.
        self.block_reach = 1 + drafts + lookahead + block_size - 1
        self._block_size = block_size
        self._rounds_run = 0
        self._allocate([], self._empty(), self._empty(), self._empty())

    def _empty(self) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def _allocate(self, rows: list[Row], flat: Ints, base: Ints, end: Ints) -> None:
        """Set the slots to these rows, with empty slots behind them."""
        spare = _SPARE_SLOTS + len(rows) // 8
        self._slots: list[Row | None] = [*rows]
        self.flat = np.concatenate((flat, np.full(spare, self.parked)))
        self.base = np.concatenate((base, np.full(spare, -self.parked - self.block_reach)))
        self._end = np.concatenate((end, np.full(spare, _NEVER)))
        self._ones = np.ones(len(self.flat), dtype=np.int64)
        self._last_began = self._last_base = self._empty()
        self.count = len(rows)
        self._base_sum = int(np.add.reduce(base))
        self._flat_sum = int(np.add.reduce(self.flat))
        self.context = self._base_sum + self._flat_sum - spare * self.parked
        # Rounds run before some row may be finished, and before every row may be at its last token.
        self._no_finish_before = self._rounds_run
        self._useful_before = self._rounds_run

    def rows(self) -> list[Row]:
        """The rows in running order."""
        return [row for row in self._slots if row is not None]

    def _live(self) -> NDArray[np.bool_]:
        live: NDArray[np.bool_] = self.flat != self.parked
        return live

    # --- blocks -------------------------------------------------------------------------------------------------------

    def blocks_bound(self) -> int:
        """An upper bound of `blocks_needed` from the running sum of contexts alone."""
        return (self.context + self.count * self.block_reach) // self._block_size

    def blocks_needed(self) -> int:
        """Blocks that all settled rows hold once their next round is scheduled."""
        return int(np.add.reduce((self.flat + self.base + self.block_reach) // self._block_size))

    def blocks_held(self) -> list[int]:
        """Blocks that each row holds between two steps: those of its last round, or of before it settled."""
        last = ((self._last_began + self._last_base + self.block_reach) // self._block_size).tolist()
        last += [0] * (len(self._slots) - len(last))
        return [max(row.blocks, last[i]) for i, row in enumerate(self._slots) if row is not None]

    def draft_tokens(self) -> int:
        """Drafts that the next round of all rows verifies."""
        return self.count * self.drafts

    def pending_drafts(self) -> list[int]:
        """Drafts that each row verifies in its next round."""
        return [self.drafts] * self.count

    def computed_tokens(self) -> list[int]:
        """Computed tokens of each row."""
        computed: list[int] = (self.flat + self.base)[self._live()].tolist()
        return computed

    # --- membership ---------------------------------------------------------------------------------------------------

    def add(self, rows: list[Row]) -> None:
        """Append rows that have settled: each holds a full set of drafts and its next step is a round."""
        if len(self._slots) + len(rows) > len(self.flat):
            self._pack(len(rows))
        self.flat, self.base = self.flat.copy(), self.base.copy()
        for row in rows:
            slot = len(self._slots)
            position = row.position
            base = row.computed_tokens - position
            left = row.end_tokens - row.known_tokens
            self.flat[slot] = position
            self.base[slot] = base
            self._end[slot] = position + left
            self._slots.append(row)
            self.count += 1
            self.context += row.computed_tokens
            self._base_sum += base
            self._flat_sum += position - self.parked
            row.settled_round = self._rounds_run
            self._no_finish_before = min(
                self._no_finish_before, self._rounds_run + (left - 1) // self._most_commits + 1
            )

    def _pack(self, more: int) -> None:
        """Close the gaps that rows have left and make room for some more."""
        live = self._live()
        began, last_base = self._last_began, self._last_base
        kept = live[: len(began)]
        flat, base, end = self.flat[live], self.base[live], self._end[live]
        no_finish, useful = self._no_finish_before, self._useful_before
        self._allocate(self.rows(), flat, base, end)
        self._last_began, self._last_base = began[kept], last_base[kept]
        self._no_finish_before, self._useful_before = no_finish, useful
        if len(self._slots) + more > len(self.flat):
            self.flat = np.concatenate((self.flat, np.full(more, self.parked)))
            self.base = np.concatenate((self.base, np.full(more, -self.parked - self.block_reach)))
            self._end = np.concatenate((self._end, np.full(more, _NEVER)))
            self._ones = np.ones(len(self.flat), dtype=np.int64)
            self._flat_sum += more * self.parked

    def release(self) -> list[Row]:
        """Take all rows out of the arrays before a step's rounds are scheduled, and bring their fields up to date."""
        released = self.rows()
        slots = [slot for slot, row in enumerate(self._slots) if row is not None]
        columns = (slots, self.computed_tokens(), self.pending_drafts(), self.blocks_held())
        for row, slot, computed, drafts, blocks in zip(released, *columns, strict=True):
            self._account(row, slot, computed + 1)
            row.computed_tokens = computed
            row.pending_drafts = drafts
            row.blocks = blocks
        self._allocate([], self._empty(), self._empty(), self._empty())
        return released

    def take_finished(self) -> tuple[list[Row], int]:
        """Remove the rows that have reached their end; returns them and the tokens by which they overshot it in all."""
        if self._rounds_run < self._no_finish_before or not self.count:
            return [], 0
        left = self._end - self.flat
        least = int(left.min())
        taken: list[Row] = []
        too_many = 0
        if least <= 0:
            self.base = self.base.copy()
            for slot in (left <= 0).nonzero()[0].tolist():
                row = self._slots[slot]
                assert row is not None
                overshoot = -int(left[slot])
                self._account(row, slot, row.end_tokens + overshoot)
                row.draft_tokens_cut += max(0, overshoot - 1)  # the bonus token is no draft
                row.known_tokens = row.end_tokens
                row.pending_drafts = 0
                too_many += overshoot
                taken.append(row)
                self._park(slot)
            least = 1
        self._no_finish_before = self._rounds_run + (least - 1) // self._most_commits + 1
        return taken, too_many

    def _park(self, slot: int) -> None:
        position, base = int(self.flat[slot]), int(self.base[slot])
        self.flat[slot] = self.parked
        self.base[slot] = -self.parked - self.block_reach
        self._end[slot] = _NEVER
        self._slots[slot] = None
        self.count -= 1
        self.context -= position + base
        self._base_sum -= base
        self._flat_sum += self.parked - position

    @property
    def rounds_run(self) -> int:
        """Rounds of settled rows so far, whoever they were."""
        return self._rounds_run

    def tokens_left(self, most: int) -> int:
        """Sum over the rows of the tokens that they still commit, at most `most` of each."""
        return int(np.minimum(self._end - self.flat, most)[self._live()].sum())

    # --- rounds -------------------------------------------------------------------------------------------------------

    def advance(self) -> int:
        """Run one round of every row; returns the tokens they would commit: `take_finished` tells those past an end."""
        began = self.flat
        self.flat = flat = self._next_flat[began]
        flat_sum = int(flat.dot(self._ones))  # half the time of a sum for so few elements
        committed = flat_sum - self._flat_sum
        self._flat_sum = flat_sum
        self.context += committed
        self._last_began = began
        self._last_base = self.base
        self._rounds_run += 1
        return committed

    def rounds_without_finish(self) -> int:
        """Rounds after the last of which the first finish is possible, by the bound at hand."""
        return self._no_finish_before - self._rounds_run

    def rounds_ahead(self, most_blocks: int) -> int:
        """Rounds that can be run before drafts or blocks have to be questioned; a finish may come earlier."""
        ahead = self._useful_before - self._rounds_run if self._most_drafts else UNLIMITED
        return min(ahead, self.rounds_within(most_blocks))

    def rounds_within(self, most_blocks: int) -> int:
        """Rounds that so many blocks are enough for, whatever is accepted."""
        if most_blocks >= UNLIMITED:
            return UNLIMITED
        room = most_blocks * self._block_size - self.context - self.count * self.block_reach
        return room // (self.count * self._most_commits) + 1

    def look_ahead(self, rounds: int) -> tuple[Ints, Ints]:
        """Positions [round, slot] before each of the next rounds and after the last, and the contexts; no change.

        Ends with the first round that finishes a row, at most `rounds` long.
        """
        if self.drafts:
            positions = np.empty((rounds + 1, len(self.flat)), dtype=np.int64)
            positions[0] = self.flat
            for i in range(rounds):
                self._next_flat.take(positions[i], out=positions[i + 1], mode="clip")
        else:
            positions = self.flat + np.arange(rounds + 1)[:, None] * self._live()
        finishes: NDArray[np.bool_] = np.any(positions[1:] >= self._end, axis=1)
        first = int(finishes.argmax())
        if finishes[first]:
            positions = positions[: first + 2]
        return positions, self.context - self._flat_sum + positions.dot(self._ones)

    def blocks_at(self, positions: Ints) -> Ints:
        """Blocks that all rows hold in each of several rounds, [round, slot]."""
        blocks: Ints = ((positions + (self.base + self.block_reach)) // self._block_size).dot(self._ones)
        return blocks

    def jump(self, positions: Ints, contexts: Ints, rounds: int) -> None:
        """Run the first `rounds` of the rounds looked at."""
        self._flat_sum += int(contexts[rounds]) - self.context
        self.context = int(contexts[rounds])
        self.flat = positions[rounds].copy()
        self._last_began = positions[rounds - 1].copy()
        self._last_base = self.base
        self._rounds_run += rounds

    def any_can_use_drafts(self) -> bool:
        """Whether some row has more than one token to go, so that drafting on makes sense."""
        if self._rounds_run < self._useful_before:
            return True
        if not self.count:
            return False
        # The row with the most left cannot be at its last token for so many rounds, whoever else comes or goes.
        most_left = int((self._end - self.flat)[self._live()].max())
        self._useful_before = self._rounds_run + (most_left - 2) // self._most_commits + 1
        return most_left > 1

    def _account(self, row: Row, slot: int, known_tokens: int) -> None:
        """Book the rounds that a row ran here: each committed one token that is no draft."""
        rounds = self._rounds_run - row.settled_round
        row.rounds += rounds
        if self._most_drafts:
            row.accepted_tokens += known_tokens - row.known_tokens - rounds
            self._account_drafts(row, slot, rounds)
        row.known_tokens = known_tokens

    def _account_drafts(self, row: Row, slot: int, rounds: int) -> None:
        row.num_drafts += rounds
        row.draft_tokens += rounds * self.drafts
