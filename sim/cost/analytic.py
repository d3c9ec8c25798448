"""Analytic calibrations: tables of a step's terms from a GPU's datasheet and a model's dims, with no GPU at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ..inputs.calibration import (
    SCHEMA,
    CalibrationFile,
    ChainDraft,
    Curve,
    DecodeAttention,
    DenseColumns,
    Graphs,
    Hardware,
    MemoryBudget,
    Models,
    NarrowPasses,
    PrefillAttention,
    Provenance,
    Roofline,
    SamplingCosts,
    TableCosts,
)
from ..inputs.model_dims import ModelDims, eagle_head
from .analytic_notes import not_modelled, notes
from .assumptions import Assumptions
from .devices import Device
from .grid_points import Along, grid_points
from .prefill_attention import pairs
from .roofline import LAYER_BYTES, Dtype, ModelRoofline

CAPTURE_LIMIT = 512
CAPTURE_SIZES = [1, 2, 4, *range(8, 256, 8), *range(256, CAPTURE_LIMIT + 1, 16)]  # vLLM's default ladder
MOST_ROWS, MOST_REQUESTS, MOST_QUERY, MOST_CONTEXT = 16_384, 1024, 65, 131_072
DEFAULT_UTILISATION = 0.9


@dataclass(frozen=True, slots=True)
class AnalyticSetup:
    """What is to be priced, and its names.

    draft: a model of its own, "eagle" for an EAGLE-type head, None for no draft.
    dtype: of the target's layers; a draft is in 16 bit. The draft is divided over the same GPUs as the target.
    """

    name: str
    device: Device
    target_name: str
    target: ModelDims
    date: str
    draft: ModelDims | str | None = None
    draft_name: str | None = None
    tensor_parallel: int = 1
    dtype: Dtype = "bf16"
    assumed: Assumptions = field(default_factory=Assumptions)

    def target_roofline(self) -> ModelRoofline:
        """The target on one GPU."""
        return ModelRoofline(self.target, self.device, self.tensor_parallel, self.dtype, assumed=self.assumed)

    def draft_roofline(self) -> ModelRoofline | None:
        """The draft on one GPU."""
        if self.draft is None:
            return None
        fusion = isinstance(self.draft, str)
        dims = eagle_head(self.target) if isinstance(self.draft, str) else self.draft
        return ModelRoofline(dims, self.device, self.tensor_parallel, fusion=fusion, assumed=self.assumed)


def analytic_calibration(setup: AnalyticSetup) -> CalibrationFile:
    """The calibration of kind "analytic". The setup must be possible: dims that divide, weights that fit (`unfit`)."""
    return CalibrationFile.model_validate(
        {
            "schema": SCHEMA,
            "name": setup.name,
            "kind": "analytic",
            "provenance": _provenance(setup),
            "hardware": Hardware(gpu=setup.device.name, gpus_per_replica=setup.tensor_parallel),
            "models": Models(target=setup.target_name, draft=setup.draft_name, dtype=setup.dtype),
            "costs": _table_costs(setup.target_roofline(), setup.draft_roofline()),
            "memory": analytic_memory(setup),
        }
    )


def analytic_memory(setup: AnalyticSetup) -> MemoryBudget:
    """Bytes of one GPU."""
    target, draft, tp = setup.target_roofline(), setup.draft_roofline(), setup.tensor_parallel
    draft_bytes = 0.0
    if draft is not None:
        draft_bytes = draft.layers_bytes if draft.fusion else draft.dims.weight_bytes(tp=tp)
    return MemoryBudget(
        gpu_memory_bytes=setup.device.memory_bytes,
        target_weight_bytes=target.dims.weight_bytes(LAYER_BYTES[setup.dtype], tp),
        draft_weight_bytes=draft_bytes,
        reserve_bytes=setup.assumed.reserve_bytes,
        kv_bytes_per_token=target.dims.kv_bytes_per_token(tp),
        draft_kv_bytes_per_token=draft.dims.kv_bytes_per_token(tp) if draft else 0.0,
    )


def unfit(memory: MemoryBudget) -> tuple[str, str, str] | None:
    """Why no KV cache is left beside the weights (what, rule, remedy), or None."""
    needed = memory.target_weight_bytes + memory.draft_weight_bytes + memory.reserve_bytes
    usable = memory.gpu_memory_bytes * DEFAULT_UTILISATION
    if needed < usable:
        return None
    what = f"weights and reserve take {needed / 1e9:.1f} GB of each GPU"
    rule = f"{usable / 1e9:.1f} GB can be used at gpu_memory_utilization {DEFAULT_UTILISATION:g}"
    return what, rule, "take a larger tensor-parallel size, a larger GPU or a smaller model"


def _provenance(setup: AnalyticSetup) -> Provenance:
    return Provenance(
        source=f"Computed from {setup.device.source} and the dims in config.json; formulas in docs/analytic.md",
        date=setup.date,
        licence="Datasheet peaks and dims are facts; the table is our own and under the licence of this repository.",
        measured=[],
        not_measured=[
            "Every number: nothing here was measured.",
            *setup.assumed.statements(),
            *not_modelled(setup.target),
        ],
        notes=notes(setup.device, setup.tensor_parallel, setup.draft),
    )


def _table_costs(target: ModelRoofline, draft: ModelRoofline | None) -> TableCosts:
    ladder = [1, 16, 64, 256, CAPTURE_LIMIT]
    wide = [*ladder, 2048, MOST_ROWS]
    dense = DenseColumns(
        full=_curve(target.dense_ms, ladder),
        piecewise=_curve(target.piecewise_ms, ladder),
        eager=_curve(target.eager_ms, wide),
    )
    host_ms = target.assumed.host_ms
    return TableCosts(
        form="table",
        dense=dense,
        head=_curve(target.head_ms, wide),
        decode_attention=_decode_attention(target),
        prefill_attention=_prefill_attention(target),
        sampling=_sampling(target),
        kv_update=_curve(target.kv_update_ms, [1, MOST_ROWS]),
        draft=_chain(draft, wide) if draft else None,
        host=Curve(rows=[1, MOST_ROWS], ms=[host_ms, host_ms]),
        graphs=Graphs(capture_sizes=CAPTURE_SIZES, unit="tokens", round_to_query=True, limit=CAPTURE_LIMIT),
        roofline=Roofline(
            weight_bytes=target.layers_bytes,
            flops_per_row=target.flops_per_row,
            bandwidth_gb_per_s=target.device.bandwidth_gb_per_s,
            tflop_per_s=target.peak_tflop_per_s,
        ),
    )


def _curve(ms: Callable[[float], float], seeds: list[int]) -> Curve:
    rows = grid_points([ms], seeds)
    return Curve(rows=rows, ms=[_rounded(ms(point)) for point in rows])


def _decode_attention(target: ModelRoofline) -> DecodeAttention:
    """Linear in the batch, nearly so in context and query: the points are few."""
    ms = target.decode_attention_ms
    batches = [1, MOST_REQUESTS]
    by_context = [partial(ms, n, q) for n in batches for q in (1, 8, MOST_QUERY)]
    by_query = [partial(ms, n, context=c) for n in batches for c in (1, 64, 1024, MOST_CONTEXT)]
    contexts = grid_points(by_context, [1, 1024, MOST_CONTEXT])
    queries = grid_points(by_query, [1, 8, MOST_QUERY])
    table = [[[_rounded(ms(n, q, c)) for c in contexts] for q in queries] for n in batches]
    return DecodeAttention(batch=batches, query=queries, context=contexts, ms=table)


def _prefill_attention(target: ModelRoofline) -> PrefillAttention:
    ms = target.prefill_attention_ms
    by_chunk = [Along(partial(ms, start=start), partial(pairs, start=start)) for start in (0, 1024, 8192, MOST_CONTEXT)]
    chunks = grid_points(by_chunk, [1, 64, MOST_ROWS])
    starts = grid_points([partial(ms, chunk) for chunk in (1, 16, 128, 1024, MOST_ROWS)], [0, 1024, MOST_CONTEXT])
    table = [[_rounded(ms(chunk, start)) for start in starts] for chunk in chunks]
    return PrefillAttention(chunk=chunks, start=starts, ms=table)


def _sampling(target: ModelRoofline) -> SamplingCosts:
    """Proportional to rows of logits, so that the corners say everything."""
    per_logit = target.assumed.sampling_bytes_per_logit
    batches, queries = [1, MOST_REQUESTS], [1, MOST_QUERY]
    table = [[_rounded(target.sampling_ms(n * q, per_logit)) for q in queries] for n in batches]
    return SamplingCosts(batch=batches, query=queries, ms=table)


def _chain(draft: ModelRoofline, row_seeds: list[int]) -> ChainDraft:
    ms = draft.narrow_pass_ms
    batches = grid_points([partial(ms, context=c) for c in (1, 1024, MOST_CONTEXT)], [1, 16, MOST_REQUESTS])
    contexts = grid_points([partial(ms, n) for n in (1, 64, MOST_REQUESTS)], [1, 1024, MOST_CONTEXT])
    table = [[_rounded(ms(n, c)) for c in contexts] for n in batches]
    narrow = NarrowPasses(batch=batches, context=contexts, ms=table)
    return ChainDraft(kind="chain", first=_curve(draft.first_pass_ms, row_seeds), narrow=narrow)


def _rounded(ms: float) -> float:
    """Six significant digits: more would say more than the model knows."""
    return float(f"{ms:.6g}")
