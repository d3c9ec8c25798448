"""Where rounds lead: for every output position and draft length, the position of the next round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns

Ints = NDArray[np.int64]


class RoundTables:
    """Tables of one run of an arm, each made when its draft length is first used.

    parked: the position of empty slots, beyond any that a round can reach; it leads to itself.
    drafted: how many tokens the drafter would propose at each position, the parking position included; None: always k.
    """

    def __init__(self, runs: AcceptanceRuns, most_drafts: int) -> None:
        self.runs = runs
        self.most_drafts = most_drafts
        self.parked = parking_position(runs, most_drafts)
        self.drafted: NDArray[np.uint8] | None = None
        if runs.drafted is not None:
            self.drafted = np.zeros(self.parked + 1, dtype=np.uint8)
            self.drafted[: len(runs.drafted)] = runs.drafted
        self._after: dict[int, Ints] = {}

    def after(self, drafts: int) -> Ints:
        """Where a round with up to `drafts` drafts leads from each position, uncut: p + min(accepted, drafted, k) + 1.

        The last entry, the parking position, leads to itself; so do those before it that only an uncut last round
        reaches.
        """
        table = self._after.get(drafts)
        if table is None:
            table = self._after[drafts] = self._make(drafts)
        return table

    def _make(self, drafts: int) -> Ints:
        accepted = self.runs.accepted
        total = len(accepted)
        table = np.arange(1, self.parked + 2, dtype=np.int64)
        table[total:] = self.parked
        if drafts:
            most = np.uint8(drafts)
            if self.runs.drafted is None:
                table[:total] += np.minimum(accepted, most)
            else:
                table[:total] += np.minimum(np.minimum(accepted, self.runs.drafted), most)
        return table

    def proposals(self, positions: Ints, drafts: int) -> Ints:
        """Drafts that the next round verifies at each position, at most `drafts`; 0 where a slot is empty."""
        if self.drafted is None:
            return np.where(positions == self.parked, 0, drafts)
        return np.minimum(self.drafted[positions], np.uint8(drafts)).astype(np.int64)


def parking_position(runs: AcceptanceRuns, most_drafts: int) -> int:
    """The position of empty slots, beyond any that a round can reach."""
    return len(runs.accepted) + most_drafts + 1
