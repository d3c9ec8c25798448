"""What a step costs and what memory it leaves: calibration files and the inline `affine` form.

A file says what it is (`kind`), where each number comes from (`provenance`) and how far it reaches (`fitted_range`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from .numbers import Bytes, Count, NonNegative, Positive

SCHEMA = "specsim-calibration/1"


class Part(BaseModel):
    """A block of a calibration: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AffineCosts(Part):
    """Costs linear in tokens and context; every field is 0 unless given.

    A target pass: fixed + rows * per_token + sum of contexts * per_kv_token. A draft pass likewise, per serial pass.
    `host_ms` runs in series with the device unless scheduling is asynchronous.
    """

    target_fixed_ms: NonNegative = 0.0
    target_per_token_us: NonNegative = 0.0
    target_per_kv_token_ns: NonNegative = 0.0
    draft_fixed_ms: NonNegative = 0.0
    draft_per_token_us: NonNegative = 0.0
    draft_per_kv_token_ns: NonNegative = 0.0
    sampling_fixed_ms: NonNegative = 0.0
    kv_update_per_token_us: NonNegative = 0.0
    host_ms: NonNegative = 0.0


class InlineAffine(AffineCosts):
    """Affine costs written in the scenario itself, for theory, teaching and papers."""

    kind: Literal["affine"]
    num_gpu_blocks: Count | None = None
    num_gpu_blocks_baseline: Count | None = None


class FileAffineCosts(AffineCosts):
    """Affine costs in a calibration file."""

    form: Literal["affine"]


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
    with the draft's weights and KV only where speculation is configured.
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


class HeldOut(Part):
    """Relative error on cells that were not fitted, in percent."""

    median_percent: NonNegative
    p95_percent: NonNegative | None = None
    cells: Count | None = None


class CalibrationFile(Part):
    """A calibration as stored in a file of `calibrations/`."""

    schema_: Annotated[Literal["specsim-calibration/1"], Field(alias="schema")]
    name: Annotated[str, Field(min_length=1)]
    kind: Literal["measured", "imported", "published", "analytic"]
    provenance: Provenance
    hardware: Hardware
    models: Models
    costs: FileAffineCosts
    memory: MemoryBudget | None = None
    async_scheduling: bool | None = None
    fitted_range: FittedRange | None = None
    heldout: HeldOut | None = None


class Calibration(Part):
    """What the simulator uses, whether it came from a file or from the scenario."""

    name: str
    kind: Literal["affine", "measured", "imported", "published", "analytic"]
    costs: AffineCosts
    memory: MemoryBudget | None = None
    num_gpu_blocks: Count | None = None
    num_gpu_blocks_baseline: Count | None = None
    async_scheduling: bool = False
    fitted_range: FittedRange | None = None
    heldout: HeldOut | None = None
    sha256: str | None = None
