"""What drafting costs, from the tables of a drafter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..inputs.calibration import ChainDraft, LookupDraft, ParallelDraft
from .context_lines import NarrowPassTable
from .curve import CompiledCurve
from .step_costs import Floats


class CompiledDrafter:
    """What drafting costs: a chain of passes, one parallel pass, or a look-up on the CPU."""

    def __init__(self, draft: ChainDraft | ParallelDraft | LookupDraft) -> None:
        self._lookup = draft if isinstance(draft, LookupDraft) else None
        self._block = draft.block if isinstance(draft, ParallelDraft) else 0
        self._first = None
        self._narrow = None
        if isinstance(draft, ChainDraft):
            self._first = CompiledCurve(draft.first)
            self._narrow = NarrowPassTable(draft.narrow)
        elif isinstance(draft, ParallelDraft):
            self._first = CompiledCurve(draft.one_pass)

    def ms(self, rows: int, requests: int, context_tokens: int, passes: int) -> tuple[float, bool]:
        """Drafting of one step: `rows` target rows, `requests` that draft on; and whether it was extrapolated."""
        if self._first is None:
            return self._lookup_ms(requests), False
        wide = requests * self._block if self._block else rows
        if not wide:
            return 0.0, False
        ms, beyond = self._first.at(wide), wide > self._first.last
        if self._narrow is not None and requests:
            line = self._narrow.line(requests)
            context = context_tokens / requests
            ms += passes * line.at(context) - line.ms[0]
            beyond = beyond or line.extrapolated(context)
        return ms, beyond

    def ms_of_rounds(self, rows: int, requests: int, contexts: Floats, passes: int) -> tuple[Floats, NDArray[np.bool_]]:
        """The same for several rounds of the same requests, by their mean contexts."""
        if self._first is None or self._narrow is None:
            ms, beyond = self.ms(rows, requests, 0, passes)
            return np.full(len(contexts), ms), np.full(len(contexts), beyond)
        line = self._narrow.line(requests)
        outside = (contexts > line.contexts[-1]) | line.beyond | (rows > self._first.last)
        return self._first.at(rows) + (passes * line.at_all(contexts) - line.ms[0]), outside

    def _lookup_ms(self, requests: int) -> float:
        assert self._lookup is not None
        return self._lookup.fixed_ms + self._lookup.per_request_us * 1e-3 * requests
