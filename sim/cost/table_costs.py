"""Costs by terms from measured tables: stairs kept, graph modes and padding as the engine has them."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

import numpy as np

from ..inputs.calibration import (
    Roofline,
    SamplingCosts,
    TableCosts,
)
from ..inputs.errors import InputError, Problem
from .context_lines import ContextLine, DecodeAttentionTable
from .curve import CompiledCurve, bracket
from .drafter import CompiledDrafter
from .graph_launch import GraphLaunch
from .prefill_attention import PrefillAttentionTable
from .step_costs import Floats, GraphMode, RoundTable, StepShape, StepTerms


def roofline_scale(roofline: Roofline, rows: float, last: float) -> float:
    """How much longer the roofline is at `rows` than at the last measured ones: boundary utilisation held."""
    return roofline_ms(roofline, rows) / roofline_ms(roofline, last)


def roofline_ms(roofline: Roofline, rows: float) -> float:
    """The longer of reading all weights once and computing all rows, at peak rates."""
    read_ms = roofline.weight_bytes / (roofline.bandwidth_gb_per_s * 1e6)
    compute_ms = rows * roofline.flops_per_row / (roofline.tflop_per_s * 1e9)
    return max(read_ms, compute_ms)


def no_roofline(name: str, rows: float, last: float) -> float:
    """Refuse to go beyond the measured rows of a file that does not say how its time would grow."""
    what = f"a pass of {rows:g} rows lies beyond the dense table, which ends at {last:g}"
    rule = "there is no roofline to scale the last time by"
    remedy = "add a roofline section, measure larger passes, or lower max_num_batched_tokens and max_num_seqs"
    raise InputError([Problem(name, 1, 1, "costs.roofline", what, rule, remedy)])


class SamplingTable:
    """sampling(batch, query): bilinear inside the grid, growing with the rows beyond it."""

    def __init__(self, table: SamplingCosts) -> None:
        self.first, self.second, self._ms = list(table.batch), list(table.query), table.ms
        self._known: dict[tuple[float, float], float] = {}

    def at(self, first: float, second: float) -> float:
        """Milliseconds at a point; outside, at the nearest edge."""
        ms = self._known.get((first, second))
        if ms is None:
            low, high, part = bracket(self.first, first)
            left, right, share = bracket(self.second, second)
            below = self._ms[low][left] + (self._ms[low][right] - self._ms[low][left]) * share
            above = self._ms[high][left] + (self._ms[high][right] - self._ms[high][left]) * share
            ms = self._known[first, second] = below + (above - below) * part
        return ms

    def of(self, requests: int, rows: int) -> float:
        """So many requests with so many rows of logits in all."""
        query = rows / requests
        scale = max(1.0, requests / self.first[-1]) * max(1.0, query / self.second[-1])
        return scale * self.at(requests, query)

    def beyond(self, requests: int, rows: int) -> bool:
        """Whether that lies outside the grid."""
        return requests > self.first[-1] or rows > requests * self.second[-1]


class RoundBase(NamedTuple):
    """What a batch shape costs whatever its contexts: the terms without attention, and the lines over the context."""

    host: float
    dense_and_head: float
    kv_update: float
    sampling: float
    line: ContextLine | None
    beyond: bool
    mode: GraphMode


class TableStepCosts:
    """A compiled table calibration for one arm; what repeats is looked up once. draft_extend: as in `compile_costs`."""

    def __init__(
        self,
        costs: TableCosts,
        draft_lengths: Collection[int],
        name: str = "the calibration",
        *,
        draft_extend: bool = False,
    ) -> None:
        self._draft_extend = draft_extend
        scale = partial(roofline_scale, costs.roofline) if costs.roofline else partial(no_roofline, name)
        columns = {
            GraphMode.FULL: costs.dense.full,
            GraphMode.PIECEWISE: costs.dense.piecewise,
            GraphMode.EAGER: costs.dense.eager,
        }
        self.dense = {mode: CompiledCurve(column, scale) for mode, column in columns.items() if column is not None}
        self._launches = {1 + drafts: GraphLaunch(costs.graphs, costs.dense, 1 + drafts) for drafts in draft_lengths}
        self.graphs = self._launches[1 + max(draft_lengths)]
        self.capture_unit = costs.graphs.unit if costs.graphs and costs.dense.full else None
        self._knows_graphs = costs.graphs is not None
        self.head = CompiledCurve(costs.head) if costs.head else None
        self.attention = DecodeAttentionTable(costs.decode_attention) if costs.decode_attention else None
        self.prefill = PrefillAttentionTable(costs.prefill_attention) if costs.prefill_attention else None
        self.sampling = SamplingTable(costs.sampling) if costs.sampling else None
        self.kv_update = CompiledCurve(costs.kv_update) if costs.kv_update else None
        self.host = CompiledCurve(costs.host) if costs.host else None
        self.drafter = CompiledDrafter(costs.draft) if costs.draft else None
        self._bases: dict[tuple[int, int], RoundBase] = {}

    def launch(self, decodes: int, decode_rows: int, prompt_rows: int) -> tuple[GraphMode, int]:
        """The mode of a pass and the rows it computes; uniform rounds of every captured length have graphs."""
        tokens = decode_rows // decodes if decodes and not decode_rows % decodes else 0
        return self._launches.get(tokens, self.graphs).launch(decodes, decode_rows, prompt_rows)

    def terms(self, shape: StepShape, draft_passes: int) -> StepTerms:
        """Cost of a step; draft_passes: serial passes of the drafter, 0 without one."""
        decodes, draft_tokens, context, chunks, _, _ = shape
        if chunks or not decodes:
            return self._mixed(shape, draft_passes)
        rows = decodes + draft_tokens
        base = self._bases.get((decodes, rows)) or self._compile_base(decodes, rows)
        beyond, target, draft = base.beyond, base.dense_and_head, 0.0
        if base.line is not None:
            mean_context = context / decodes
            target += base.line.at(mean_context)
            beyond = beyond or base.line.extrapolated(mean_context)
        if draft_passes and self.drafter is not None:
            wide_rows = decodes if self._draft_extend else rows
            draft, draft_beyond = self.drafter.ms(wide_rows, decodes, context, draft_passes)
            beyond = beyond or draft_beyond
        return StepTerms(base.host, target, target, base.kv_update, base.sampling, draft, beyond, base.mode)

    def rounds(self, decodes: int, drafts: int, context_tokens: Floats, draft_passes: int) -> RoundTable:
        """Cost of several steps that are rounds of the same requests; the same numbers as `terms` gives one by one."""
        rows = decodes * (1 + drafts)
        base = self._bases.get((decodes, rows)) or self._compile_base(decodes, rows)
        phases = np.empty((6, len(context_tokens)))
        phases[0], phases[3], phases[4], phases[5] = base.host, base.kv_update, base.sampling, 0.0
        phases[1] = phases[2] = base.dense_and_head
        beyond = np.full(len(context_tokens), base.beyond)
        contexts = context_tokens / decodes
        if base.line is not None:
            phases[1] = phases[2] = base.dense_and_head + base.line.at_all(contexts)
            beyond |= base.line.beyond | (contexts > base.line.contexts[-1])
        if draft_passes and self.drafter is not None:
            wide_rows = decodes if self._draft_extend else rows
            phases[5], draft_beyond = self.drafter.ms_of_rounds(wide_rows, decodes, contexts, draft_passes)
            beyond |= draft_beyond
        return RoundTable(phases, beyond, base.mode)

    def chunk_ms(self, rows: int, context_tokens: int, finishes: bool) -> float:
        """A target pass over nothing but one prompt chunk; `finishes`: its last row has logits."""
        mode, padded = self.launch(0, 0, rows)
        attention_ms = self.prefill.of(rows, context_tokens) if self.prefill else 0.0
        return self.dense[mode].at(padded) + self._head(int(finishes)) + attention_ms

    def _compile_base(self, decodes: int, rows: int) -> RoundBase:
        mode, padded = self.launch(decodes, rows, 0)
        around = self._around(rows, decodes, rows)
        base = self._bases[decodes, rows] = RoundBase(
            host=around[0],
            dense_and_head=self.dense[mode].at(padded) + self._head(rows),
            kv_update=around[1],
            sampling=around[2],
            line=self.attention.line(decodes, rows) if self.attention else None,
            beyond=padded > self.dense[mode].last or self._head_beyond(rows) or around[3],
            mode=mode if self._knows_graphs else GraphMode.NONE,
        )
        return base

    def _mixed(self, shape: StepShape, draft_passes: int) -> StepTerms:
        """A step with prompt chunks."""
        decodes, draft_tokens, context, chunks, finished_prompts, finished_context = shape
        decode_rows = decodes + draft_tokens
        rows = decode_rows + sum(tokens for tokens, _ in chunks)
        mode, padded = self.launch(decodes, decode_rows, rows - decode_rows)
        logits_rows = decode_rows + finished_prompts
        host, kv_update, sampling, beyond = self._around(rows, decodes + finished_prompts, logits_rows)
        alone = self.terms(StepShape(decodes, draft_tokens, context, [], 0, 0), 0) if decodes else None
        target = self.dense[mode].at(padded) + self._head(logits_rows)
        if self.attention is not None and decodes:
            target += self.attention.line(decodes, decode_rows).at(context / decodes)
        beyond = beyond or padded > self.dense[mode].last or self._head_beyond(logits_rows)
        beyond = beyond or (alone is not None and alone.extrapolated)
        if self.prefill is not None:
            for tokens, start in chunks:
                target += self.prefill.of(tokens, start)
                beyond = beyond or self.prefill.beyond(tokens, start)
        draft = 0.0
        if draft_passes and self.drafter is not None:
            requests = decodes + finished_prompts
            wide_rows = rows - draft_tokens if self._draft_extend else rows
            draft, draft_beyond = self.drafter.ms(wide_rows, requests, context + finished_context, draft_passes)
            beyond = beyond or draft_beyond
        graph = mode if self._knows_graphs else GraphMode.NONE
        return StepTerms(host, target, alone.target if alone else 0.0, kv_update, sampling, draft, beyond, graph)

    def _around(self, rows: int, requests: int, logits_rows: int) -> tuple[float, float, float, bool]:
        """Host, KV update and sampling, and whether any of them lies beyond its table."""
        host = kv_update = sampling = 0.0
        beyond = False
        if self.host is not None:
            host = self.host.at(max(1, requests))
            beyond = requests > self.host.last
        if self.kv_update is not None:
            kv_update = self.kv_update.at(rows)
            beyond = beyond or rows > self.kv_update.last
        if self.sampling is not None and requests:
            sampling = self.sampling.of(requests, logits_rows)
            beyond = beyond or self.sampling.beyond(requests, logits_rows)
        return host, kv_update, sampling, beyond

    def _head(self, rows: int) -> float:
        return self.head.at(rows) if self.head is not None and rows else 0.0

    def _head_beyond(self, rows: int) -> bool:
        return self.head is not None and rows > self.head.last
