"""Settled rows whose draft length changes: from step to step by a policy, or from row to row by what was proposed."""

from __future__ import annotations

import numpy as np

from .round_tables import RoundTables
from .rows import Row
from .settled import Ints, SettledRows


class VaryingRows(SettledRows):
    """As `SettledRows`; `drafts` is the most that the next round of a row verifies, and changes with `propose`.

    A row holds the blocks of the largest round it has had, so what each slot holds is kept beside its position.
    keeps_most: a row holds the blocks of the longest round, whatever it verifies.
    """

    varying = True

    def __init__(
        self, tables: RoundTables, most_drafts: int, lookahead: int, block_size: int, *, keeps_most: bool = False
    ) -> None:
        self._keeps_most = keeps_most
        self._held = self._draft_sums = self._draft_rounds = np.zeros(0, dtype=np.int64)
        super().__init__(tables, most_drafts, lookahead, block_size)
        self._tables = tables
        self._ragged = tables.drafted is not None
        self._least_reach = lookahead + block_size

    def propose(self, drafts: int) -> None:
        """The most drafts that each row verifies in its next round."""
        if drafts != self.drafts:
            self.drafts = drafts
            self._next_flat = self._tables.after(drafts)

    def _drafts_of_slots(self) -> Ints | int:
        return self._tables.proposals(self.flat, self.drafts) if self._ragged else self.drafts

    def draft_tokens(self) -> int:
        """Drafts that the next round of all rows verifies."""
        if self._ragged:
            return int(np.add.reduce(self._tables.proposals(self.flat, self.drafts)))
        return self.count * self.drafts

    def pending_drafts(self) -> list[int]:
        """Drafts that each row verifies in its next round."""
        drafts: list[int] = self._tables.proposals(self.flat, self.drafts)[self._live()].tolist()
        return drafts

    # --- slots --------------------------------------------------------------------------------------------------------

    def _allocate(self, rows: list[Row], flat: Ints, base: Ints, end: Ints) -> None:
        super()._allocate(rows, flat, base, end)
        self._held, self._draft_sums, self._draft_rounds = (np.zeros(len(self.flat), dtype=np.int64) for _ in range(3))

    def _pack(self, more: int) -> None:
        live = self._live()
        kept = [column[live] for column in (self._held, self._draft_sums, self._draft_rounds)]
        super()._pack(more)
        self._held, self._draft_sums, self._draft_rounds = (
            np.concatenate((column, np.zeros(len(self.flat) - len(column), dtype=np.int64))) for column in kept
        )

    def add(self, rows: list[Row]) -> None:
        """Append rows that have settled: the next step of each is a round with the drafts of `propose`."""
        super().add(rows)
        new = slice(len(self._slots) - len(rows), len(self._slots))
        self._held[new] = [row.blocks for row in rows]
        self._draft_sums[new] = self._draft_rounds[new] = 0

    def _park(self, slot: int) -> None:
        super()._park(slot)
        self._held[slot] = 0

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _needed(self) -> Ints:
        """Blocks that each slot holds once its next round is scheduled."""
        drafts = self._most_drafts if self._keeps_most else self._drafts_of_slots()
        reach = drafts + (self.base + self._least_reach)
        blocks: Ints = np.maximum(self._held, (self.flat + reach) // self._block_size)
        return blocks

    def blocks_needed(self) -> int:
        """Blocks that all settled rows hold once their next round is scheduled."""
        return int(np.add.reduce(self._needed()))

    def blocks_held(self) -> list[int]:
        """Blocks that each row holds between two steps."""
        held: list[int] = self._held[self._live()].tolist()
        return held

    def blocks_at(self, positions: Ints) -> Ints:
        """Blocks that all rows hold in each of several rounds of `drafts` drafts each, [round, slot]."""
        blocks: Ints = np.maximum(self._held, self._needed_at(positions)).dot(self._ones)
        return blocks

    def _needed_at(self, positions: Ints) -> Ints:
        drafts = self._most_drafts if self._keeps_most else self.drafts
        needed: Ints = (positions + (self.base + self._least_reach + drafts)) // self._block_size
        return needed

    # --- rounds -------------------------------------------------------------------------------------------------------

    def advance(self) -> int:
        """Run one round of every row; returns the tokens they would commit: `take_finished` tells those past an end."""
        self._held = self._needed()
        drafts = self._drafts_of_slots()
        self._draft_sums += drafts
        self._draft_rounds += np.minimum(drafts, 1)
        return super().advance()

    def jump(self, positions: Ints, contexts: Ints, rounds: int) -> None:
        """Run the first `rounds` of the rounds looked at."""
        self._held = np.maximum(self._held, self._needed_at(positions[rounds - 1]))
        self._draft_sums += rounds * self.drafts
        self._draft_rounds += rounds * min(self.drafts, 1)
        super().jump(positions, contexts, rounds)

    def _account_drafts(self, row: Row, slot: int, rounds: int) -> None:
        row.num_drafts += int(self._draft_rounds[slot])
        row.draft_tokens += int(self._draft_sums[slot])

    # --- for policies -------------------------------------------------------------------------------------------------

    def outcome(self) -> tuple[int, int, int]:
        """Rounds with drafts of the step that is being committed, their accepted drafts, and how many rejected one."""
        drafts = self._tables.proposals(self.flat, self.drafts)
        accepted = (self._next_flat[self.flat] - self.flat - 1)[drafts > 0]
        return len(accepted), int(accepted.sum()), int(np.count_nonzero(accepted < drafts[drafts > 0]))

    def upcoming(self, *, next_round: bool) -> tuple[list[int], list[int]]:
        """Accepted runs and tokens left of each row's next round, or the one after it if it does not finish before."""
        after = self.flat if next_round else self._next_flat[self.flat]
        left = self._end - after
        stays = self._live() & (left > 0)
        accepted: list[int] = self._tables.runs.accepted[after[stays]].tolist()
        return accepted, left[stays].tolist()
