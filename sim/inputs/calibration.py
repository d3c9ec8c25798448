"""What a step costs and what memory it leaves: calibration files and the inline `affine` form.

A file says what it is (`kind`), where each number comes from (`provenance`) and how far it reaches (`fitted_range`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from .numbers import Bytes, Count, DraftLength, NonNegative, Number, Positive, TokensOrNone

SCHEMA = "specsim-calibration/1"
Cost = Annotated[NonNegative, Field(le=1e9)]


class Part(BaseModel):
    """A block of a calibration: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AffineCosts(Part):
    """Costs linear in tokens and context; every field is 0 unless given.

    A target pass: fixed + rows * per_token + sum of contexts * per_kv_token. A draft pass likewise, per serial pass.
    `host_ms` runs in series with the device unless scheduling is asynchronous.
    """

    target_fixed_ms: Cost = 0.0
    target_per_token_us: Cost = 0.0
    target_per_kv_token_ns: Cost = 0.0
    draft_fixed_ms: Cost = 0.0
    draft_per_token_us: Cost = 0.0
    draft_per_kv_token_ns: Cost = 0.0
    sampling_fixed_ms: Cost = 0.0
    kv_update_per_token_us: Cost = 0.0
    host_ms: Cost = 0.0


class InlineAffine(AffineCosts):
    """Affine costs written in the scenario itself, for theory, teaching and papers."""

    kind: Literal["affine"]
    num_gpu_blocks: Count | None = None
    num_gpu_blocks_baseline: Count | None = None


class FileAffineCosts(AffineCosts):
    """Affine costs in a calibration file."""

    form: Literal["affine"]


Axis = Annotated[list[Count], Field(min_length=1, max_length=100_000)]
Milliseconds = Annotated[NonNegative, Field(le=1e7)]
Times = Annotated[list[Milliseconds], Field(min_length=1, max_length=100_000)]
Grid = Annotated[list[Times], Field(min_length=1, max_length=10_000)]
Cube = Annotated[list[Grid], Field(min_length=1, max_length=10_000)]


class Curve(Part):
    """Milliseconds over rows (increasing): the measured value at a point, linear between two."""

    rows: Axis
    ms: Times


class DenseColumns(Part):
    """The dense part f(M) of a target pass by graph mode; a mode that was not measured is left out."""

    full: Curve | None = None
    piecewise: Curve | None = None
    eager: Curve | None = None


class DecodeAttention(Part):
    """Attention of decoding requests: ms[batch][query][context], context in computed tokens per request."""

    batch: Axis
    query: Axis
    context: Axis
    ms: Cube


class PrefillAttention(Part):
    """Attention of one prompt chunk: ms[chunk][start], start in computed tokens before it (0 is allowed)."""

    chunk: Axis
    start: Annotated[list[TokensOrNone], Field(min_length=1, max_length=100_000)]
    ms: Grid


class SamplingCosts(Part):
    """Sampling and rejection: ms[batch][query]."""

    batch: Axis
    query: Axis
    ms: Grid


class NarrowPasses(Part):
    """One narrow pass of a chain drafter, one row a request: ms[batch][context]."""

    batch: Axis
    context: Axis
    ms: Grid


class ChainDraft(Part):
    """Draft model, EAGLE or MTP: a first pass over all rows of the step, then k - 1 narrow passes.

    first: at the smallest context of `narrow`. It reads the same contexts as a narrow pass, so what a longer context
    adds to a narrow pass is added to it too.
    """

    kind: Literal["chain"]
    first: Curve
    narrow: NarrowPasses


class ParallelDraft(Part):
    """All k drafts in one pass over batch * block rows."""

    kind: Literal["parallel"]
    block: Count
    one_pass: Curve


class LookupDraft(Part):
    """N-gram or suffix look-up on the CPU: no pass of a model."""

    kind: Literal["lookup"]
    fixed_ms: Milliseconds = 0.0
    per_request_us: Cost = 0.0


class Graphs(Part):
    """Captured CUDA graphs. `unit`: what sizes count. A uniform batch is padded up to the next captured size.

    round_to_query: sizes in tokens are rounded up to multiples of 1 + k, as engines do that know of speculation.
    limit: the largest size that is captured; above it there is no graph.
    """

    capture_sizes: Axis
    unit: Literal["tokens", "requests"] = "tokens"
    round_to_query: bool = True
    limit: Count | None = None


class Roofline(Part):
    """Physics of the dense part, to scale by beyond the measured rows: max(weight_bytes / BW, rows * flops / F)."""

    weight_bytes: Annotated[Positive, Field(le=1e15)]
    flops_per_row: Annotated[Positive, Field(le=1e18)]
    bandwidth_gb_per_s: Annotated[Positive, Field(le=1e9)]
    tflop_per_s: Annotated[Positive, Field(le=1e9)]


class WholeStep(Part):
    """A whole step as it was measured, to hold the sum of the terms against."""

    batch: Count
    query: Count
    context: Count
    ms: Annotated[Positive, Field(le=1e7)]


class TableCosts(Part):
    """Costs by terms, each a table: a step is dense + head + attention + sampling + kv_update + draft (+ host)."""

    form: Literal["table"]
    dense: DenseColumns
    head: Curve | None = None
    decode_attention: DecodeAttention | None = None
    prefill_attention: PrefillAttention | None = None
    sampling: SamplingCosts | None = None
    kv_update: Curve | None = None
    draft: Annotated[ChainDraft | ParallelDraft | LookupDraft, Field(discriminator="kind")] | None = None
    host: Curve | None = None
    graphs: Graphs | None = None
    roofline: Roofline | None = None
    whole_steps: list[WholeStep] = []


class RoundCosts(Part):
    """Whole rounds as measured: ms[batch][drafts], null where a cell is missing. No split into phases.

    prefill_per_token_us prices prompt rows, which such a table does not hold.
    """

    form: Literal["rounds"]
    batch: Axis
    drafts: Annotated[list[DraftLength], Field(min_length=1, max_length=65)]
    ms: Annotated[
        list[Annotated[list[Annotated[Positive, Field(le=1e7)] | None], Field(min_length=1)]], Field(min_length=1)
    ]
    prefill_per_token_us: Cost = 0.0


class Provenance(Part):
    """Where the numbers come from, what was measured, what was not, and under which licence they may be passed on."""

    source: Annotated[str, Field(min_length=1)]
    date: Annotated[str, Field(min_length=1)]
    licence: Annotated[str, Field(min_length=1)]
    measured: list[str] = []
    not_measured: list[str] = []
    notes: list[str] = []


class Hardware(Part):
    """One replica's GPUs."""

    gpu: Annotated[str, Field(min_length=1)]
    gpus_per_replica: Count = 1


class Models(Part):
    """The target and, when the file knows one, the draft."""

    target: Annotated[str, Field(min_length=1)]
    draft: str | None = None
    dtype: str | None = None


class MemoryBudget(Part):
    """Bytes on one replica, from which KV blocks are derived.

    blocks = (gpu_memory * utilisation - target weights - draft weights - reserve) / (block_size * KV bytes per token),
    with the draft's weights and KV only where speculation is configured. All numbers are of one GPU: weights and KV
    heads are divided by the tensor-parallel size already (heads at least 1). reserve: activations, graphs, runtime.
    """

    gpu_memory_bytes: Positive
    target_weight_bytes: Positive
    draft_weight_bytes: Bytes = 0.0
    reserve_bytes: Bytes = 0.0
    kv_bytes_per_token: Positive
    draft_kv_bytes_per_token: Bytes = 0.0


class FittedRange(Part):
    """How far the measurements reach; steps beyond count as extrapolated."""

    max_decode_batch: Count | None = None


class HeldOutFold(Part):
    """Errors of one kind of held-out cells in percent: absolute ones, and the signed bias (positive: too slow)."""

    cells: Count
    median_percent: NonNegative
    p95_percent: NonNegative
    max_percent: NonNegative
    bias_percent: Number


class HeldOut(Part):
    """Relative error on cells that were not fitted, in percent; folds: by the way in which they were held out."""

    median_percent: NonNegative
    p95_percent: NonNegative | None = None
    cells: Count | None = None
    folds: dict[str, HeldOutFold] | None = None


class CalibrationFile(Part):
    """A calibration as stored in a file of `calibrations/`."""

    schema_: Annotated[Literal["specsim-calibration/1"], Field(alias="schema")]
    name: Annotated[str, Field(min_length=1)]
    kind: Literal["measured", "imported", "published", "analytic"]
    provenance: Provenance
    hardware: Hardware
    models: Models
    costs: Annotated[FileAffineCosts | TableCosts | RoundCosts, Field(discriminator="form")]
    memory: MemoryBudget | None = None
    async_scheduling: bool | None = None
    fitted_range: FittedRange | None = None
    heldout: HeldOut | None = None


class Calibration(Part):
    """What the simulator uses, whether it came from a file or from the scenario."""

    name: str
    kind: Literal["affine", "measured", "imported", "published", "analytic"]
    costs: AffineCosts | TableCosts | RoundCosts
    models: Models | None = None
    memory: MemoryBudget | None = None
    num_gpu_blocks: Count | None = None
    num_gpu_blocks_baseline: Count | None = None
    async_scheduling: bool = False
    fitted_range: FittedRange | None = None
    heldout: HeldOut | None = None
    sha256: str | None = None
