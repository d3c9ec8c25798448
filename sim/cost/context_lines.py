"""Tables whose last axis is the context per request: attention of decoding requests, narrow draft passes.

For each batch shape the other axes are interpolated once, which leaves a line over the context. A step then costs one
look-up in that line. Beyond the measured range the boundary utilisation holds and time grows with what is read: batch
times context, and query rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..inputs.calibration import DecodeAttention, NarrowPasses
from .curve import bracket, interpolated
from .step_costs import Floats


class ContextLine(NamedTuple):
    """Milliseconds over the context of one batch shape; `beyond`: the shape itself lies outside the measured ones."""

    contexts: list[float]
    ms: list[float]
    beyond: bool

    def at(self, context: float) -> float:
        """Milliseconds at a mean context per request."""
        ms, last = interpolated(self.contexts, self.ms, context), self.contexts[-1]
        return ms * (context / last) if context > last else ms

    def at_all(self, contexts: Floats) -> Floats:
        """The same for many contexts."""
        last = self.contexts[-1]
        ms: Floats = np.interp(contexts, self.contexts, self.ms) * np.maximum(contexts / last, 1.0)
        return ms

    def extrapolated(self, context: float) -> bool:
        """Whether this context lies outside what was measured."""
        return self.beyond or context > self.contexts[-1]


class DecodeAttentionTable:
    """g_decode(batch, query, context)."""

    def __init__(self, table: DecodeAttention) -> None:
        self._batch = list(table.batch)
        self._query = list(table.query)
        self._context = [float(context) for context in table.context]
        self._ms = table.ms
        self._lines: dict[tuple[int, int], ContextLine] = {}

    def line(self, decodes: int, rows: int) -> ContextLine:
        """The line of a batch of `decodes` requests with `rows` query rows in all."""
        line = self._lines.get((decodes, rows))
        if line is None:
            line = self._lines[decodes, rows] = self._compile(decodes, rows / decodes)
        return line

    def _compile(self, batch: int, query: float) -> ContextLine:
        low, high, part = bracket(self._batch, batch)
        first, second = (self._over_query(self._ms[i], query) for i in (low, high))
        scale = max(1.0, batch / self._batch[-1]) * max(1.0, query / self._query[-1])
        ms = [scale * (a + (b - a) * part) for a, b in zip(first, second, strict=True)]
        return ContextLine(self._context, ms, scale > 1.0)

    def _over_query(self, grid: Sequence[Sequence[float]], query: float) -> list[float]:
        return [interpolated(self._query, column, query) for column in zip(*grid, strict=True)]


class NarrowPassTable:
    """One narrow pass of a chain drafter: ms(batch, context)."""

    def __init__(self, table: NarrowPasses) -> None:
        self._batch = list(table.batch)
        self._context = [float(context) for context in table.context]
        self._ms = table.ms
        self._lines: dict[int, ContextLine] = {}

    def line(self, requests: int) -> ContextLine:
        """The line of a batch of so many requests, one row each."""
        line = self._lines.get(requests)
        if line is None:
            scale = max(1.0, requests / self._batch[-1])
            ms = [scale * interpolated(self._batch, column, requests) for column in zip(*self._ms, strict=True)]
            line = self._lines[requests] = ContextLine(self._context, ms, scale > 1.0)
        return line
