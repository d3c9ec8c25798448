"""Attention of prompt chunks from a table over chunk and start."""

from __future__ import annotations

from ..inputs.calibration import PrefillAttention
from .curve import bracket, interpolated


class PrefillAttentionTable:
    """g_prefill(chunk, start): at each start linear over the pairs of positions that attend, linear between starts.

    A chunk of n tokens after s computed ones has n (s + n / 2) pairs, so a causal kernel of constant rate comes back
    exactly between points too. Beyond the grid time grows with the pairs.
    """

    def __init__(self, table: PrefillAttention) -> None:
        self._chunk, self._start, self._ms = list(table.chunk), list(table.start), table.ms
        self._pairs = [[pairs(chunk, start) for chunk in self._chunk] for start in self._start]
        self._known: dict[tuple[int, int], float] = {}

    def of(self, chunk: int, start: int) -> float:
        """Milliseconds of one prompt chunk."""
        ms = self._known.get((chunk, start))
        if ms is None:
            ms = self._known[chunk, start] = self._look_up(chunk, start)
        return ms

    def _look_up(self, chunk: int, start: int) -> float:
        inside_chunk, inside_start = min(chunk, self._chunk[-1]), min(start, self._start[-1])
        low, high, part = bracket(self._start, inside_start)
        before, after = (self._at_start(column, inside_chunk) for column in (low, high))
        scale = pairs(chunk, start) / pairs(inside_chunk, inside_start) if self.beyond(chunk, start) else 1.0
        return scale * (before + (after - before) * part)

    def _at_start(self, column: int, chunk: int) -> float:
        return interpolated(self._pairs[column], [row[column] for row in self._ms], pairs(chunk, self._start[column]))

    def beyond(self, chunk: int, start: int) -> bool:
        """Whether the chunk lies outside the grid."""
        return chunk > self._chunk[-1] or start > self._start[-1]


def pairs(chunk: float, start: float) -> float:
    """Pairs of positions that attend in a causal chunk."""
    return chunk * (start + chunk / 2)
