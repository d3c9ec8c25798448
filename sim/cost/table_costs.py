"""Costs by terms from measured tables: stairs kept, graph modes and padding as the engine has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..inputs.calibration import (
    ChainDraft,
    LookupDraft,
    ParallelDraft,
    PrefillAttention,
    Roofline,
    SamplingCosts,
    TableCosts,
)
from .context_lines import DecodeAttentionTable, NarrowPassTable
from .curve import CompiledCurve, bracket
from .graph_launch import GraphLaunch
from .step_costs import Floats, GraphMode, RoundTable, StepShape, StepTerms


def roofline_scale(roofline: Roofline, rows: float, last: float) -> float:
    """How much longer the roofline is at `rows` than at the last measured ones: boundary utilisation held."""
    return roofline_ms(roofline, rows) / roofline_ms(roofline, last)


def roofline_ms(roofline: Roofline, rows: float) -> float:
    """The longer of reading all weights once and computing all rows, at peak rates."""
    read_ms = roofline.weight_bytes / (roofline.bandwidth_gb_per_s * 1e6)
    compute_ms = rows * roofline.flops_per_row / (roofline.tflop_per_s * 1e9)
    return max(read_ms, compute_ms)


class GridTable:
    """A two-dimensional table, bilinear, cached by its whole-number arguments; outside, the nearest edge."""

    def __init__(self, first: Sequence[int], second: Sequence[int], ms: Sequence[Sequence[float]]) -> None:
        self.first, self.second, self._ms = list(first), list(second), ms
        self._known: dict[tuple[float, float], float] = {}

    def at(self, first: float, second: float) -> float:
        """Milliseconds at a point."""
        ms = self._known.get((first, second))
        if ms is None:
            low, high, part = bracket(self.first, first)
            left, right, share = bracket(self.second, second)
            below = self._ms[low][left] + (self._ms[low][right] - self._ms[low][left]) * share
            above = self._ms[high][left] + (self._ms[high][right] - self._ms[high][left]) * share
            ms = self._known[first, second] = below + (above - below) * part
        return ms


class SamplingTable(GridTable):
    """sampling(batch, query); beyond the grid time grows with the rows."""

    def __init__(self, table: SamplingCosts) -> None:
        super().__init__(table.batch, table.query, table.ms)

    def of(self, requests: int, rows: int) -> float:
        """So many requests with so many rows of logits in all."""
        query = rows / requests
        scale = max(1.0, requests / self.first[-1]) * max(1.0, query / self.second[-1])
        return scale * self.at(requests, query)


class PrefillAttentionTable(GridTable):
    """g_prefill(chunk, start); beyond the grid time grows with the pairs of positions that attend."""

    def __init__(self, table: PrefillAttention) -> None:
        super().__init__(table.chunk, table.start, table.ms)

    def of(self, chunk: int, start: int) -> float:
        """One prompt chunk."""
        inside_chunk, inside_start = min(chunk, self.first[-1]), min(start, self.second[-1])
        ms = self.at(inside_chunk, inside_start)
        if self.beyond(chunk, start):
            ms *= chunk * (start + chunk / 2) / (inside_chunk * (inside_start + inside_chunk / 2))
        return ms

    def beyond(self, chunk: int, start: int) -> bool:
        """Whether the chunk lies outside the grid."""
        return chunk > self.first[-1] or start > self.second[-1]


class TableStepCosts:
    """A compiled table calibration for one arm. Every look-up is a dictionary hit or one bisection."""

    def __init__(self, costs: TableCosts, drafts: int) -> None:
        scale = partial(roofline_scale, costs.roofline) if costs.roofline else None
        columns = {
            GraphMode.FULL: costs.dense.full,
            GraphMode.PIECEWISE: costs.dense.piecewise,
            GraphMode.EAGER: costs.dense.eager,
        }
        self.dense = {
            mode: CompiledCurve(column, scale) if scale else CompiledCurve(column)
            for mode, column in columns.items()
            if column is not None
        }
        self.graphs = GraphLaunch(costs.graphs, costs.dense, 1 + drafts)
        self._knows_graphs = costs.graphs is not None
        self.head = CompiledCurve(costs.head) if costs.head else None
        self.attention = DecodeAttentionTable(costs.decode_attention) if costs.decode_attention else None
        self.prefill = PrefillAttentionTable(costs.prefill_attention) if costs.prefill_attention else None
        self.sampling = SamplingTable(costs.sampling) if costs.sampling else None
        self.kv_update = CompiledCurve(costs.kv_update) if costs.kv_update else None
        self.host = CompiledCurve(costs.host) if costs.host else None
        self.drafter = CompiledDrafter(costs.draft) if costs.draft else None

    def terms(self, shape: StepShape, draft_passes: int) -> StepTerms:
        """Cost of a step; draft_passes: serial passes of the drafter, 0 without one."""
        decodes, draft_tokens, context, chunks, finished_prompts, finished_context = shape
        decode_rows = decodes + draft_tokens
        prompt_rows = sum([tokens for tokens, _ in chunks]) if chunks else 0
        rows = decode_rows + prompt_rows
        mode, padded = self.graphs.launch(decodes, decode_rows, prompt_rows)
        attention_ms, beyond = self._decode_attention(decodes, decode_rows, context)
        target_decode = target = self._dense(mode, padded) + self._head(decode_rows) + attention_ms
        beyond = beyond or padded > self.dense[mode].last
        if chunks:
            target_decode = self._decode_alone(decodes, decode_rows, attention_ms)
            target += self._head(decode_rows + finished_prompts) - self._head(decode_rows)
            if self.prefill is not None:
                for tokens, start in chunks:
                    target += self.prefill.of(tokens, start)
                    beyond = beyond or self.prefill.beyond(tokens, start)
        requests = decodes + finished_prompts
        draft = 0.0
        if draft_passes and self.drafter is not None:
            draft, draft_beyond = self.drafter.ms(rows, requests, context + finished_context, draft_passes)
            beyond = beyond or draft_beyond
        return StepTerms(
            self.host.at(max(1, requests)) if self.host else 0.0,
            target,
            target_decode,
            self.kv_update.at(rows) if self.kv_update else 0.0,
            self.sampling.of(requests, decode_rows + finished_prompts) if self.sampling and requests else 0.0,
            draft,
            beyond,
            mode if self._knows_graphs else GraphMode.NONE,
        )

    def rounds(self, decodes: int, drafts: int, context_tokens: Floats, draft_passes: int) -> RoundTable:
        """Cost of several steps that are rounds of the same requests; the same numbers as `terms` gives one by one."""
        first = self.terms(StepShape(decodes, decodes * drafts, int(context_tokens[0]), [], 0, 0), draft_passes)
        phases = np.repeat(np.array(first[:6])[:, None], len(context_tokens), axis=1)
        contexts = context_tokens / decodes
        rows = decodes * (1 + drafts)
        mode, padded = self.graphs.launch(decodes, rows, 0)
        beyond = np.full(len(context_tokens), padded > self.dense[mode].last)
        if self.attention is not None:
            line = self.attention.line(decodes, rows)
            phases[1] = phases[2] = (self._dense(mode, padded) + self._head(rows)) + line.at_all(contexts)
            beyond |= line.beyond | (contexts > line.contexts[-1])
        if draft_passes and self.drafter is not None:
            phases[5], draft_beyond = self.drafter.ms_of_rounds(rows, decodes, contexts, draft_passes)
            beyond |= draft_beyond
        return RoundTable(phases, beyond, first.graph)

    def target_ms(self, rows: int, context_tokens: int) -> float:
        """One pass of the target over one prompt chunk of `rows` rows, `context_tokens` of it computed before."""
        mode, padded = self.graphs.launch(0, 0, rows)
        return (
            self._dense(mode, padded) + self._head(1) + (self.prefill.of(rows, context_tokens) if self.prefill else 0)
        )

    def _dense(self, mode: GraphMode, rows: int) -> float:
        return self.dense[mode].at(rows) if rows else 0.0

    def _head(self, rows: int) -> float:
        return self.head.at(rows) if self.head is not None and rows else 0.0

    def _decode_attention(self, decodes: int, rows: int, context_tokens: int) -> tuple[float, bool]:
        if self.attention is None or not decodes:
            return 0.0, False
        line = self.attention.line(decodes, rows)
        context = context_tokens / decodes
        return line.at(context), line.extrapolated(context)

    def _decode_alone(self, decodes: int, rows: int, attention_ms: float) -> float:
        """The pass without its prompt rows, in the graph that it would have had then."""
        if not decodes:
            return 0.0
        mode, padded = self.graphs.launch(decodes, rows, 0)
        return self._dense(mode, padded) + self._head(rows) + attention_ms


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
        wide = requests * self._block or rows
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
