"""What a simulation leaves behind: columns of steps, requests and phases, and the sampler's counters. No analysis here.

Times are ms since the start of the run. Step indices count per replica.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Status(IntEnum):
    """How a request ended. FAILED: it can never fit into the engine and was refused on arrival."""

    COMPLETED = 0
    FAILED = 1


class Phase(IntEnum):
    """What a request was doing over a run of steps, from its first scheduled step to its last."""

    PREFILL = 0  # scheduled, its known tokens not all computed
    DECODE = 1  # scheduled, one round a step; in a step that only prefills it waits
    PREFILL_LEFT_OUT = 2  # resident, the step did not reach it
    DECODE_LEFT_OUT = 3
    PREEMPTED = 4  # back in the waiting queue


@dataclass(frozen=True, slots=True)
class Steps:
    """One replica's steps in order. A step's parts run one after another: host, target, kv_update, sampling, draft.

    start_ms, host_ms, target_ms, kv_update_ms, sampling_ms, draft_ms: host_ms is only what the device does not hide.
    target_decode_ms: what the target pass would have cost without its prefill rows (= target_ms in a pure decode step).
    extrapolated_ms: the part of the step's time that lies beyond the calibrated range.
    decode_rows, prefill_rows: requests scheduled; draft_tokens: drafts verified; prefill_tokens: prompt rows.
    context_tokens: sum over decode rows of the tokens computed before the step. committed_tokens: delivered by the
    step, first tokens included. running, waiting: after scheduling. blocks_used: KV blocks held after scheduling.
    graph_mode: `GraphMode` of the target pass. proposed_drafts: the most drafts that each of its requests proposed.
    """

    start_ms: Floats
    host_ms: Floats
    target_ms: Floats
    target_decode_ms: Floats
    kv_update_ms: Floats
    sampling_ms: Floats
    draft_ms: Floats
    extrapolated_ms: Floats
    decode_rows: Ints
    draft_tokens: Ints
    prefill_rows: Ints
    prefill_tokens: Ints
    context_tokens: Ints
    committed_tokens: Ints
    running: Ints
    waiting: Ints
    blocks_used: Ints
    graph_mode: Ints
    proposed_drafts: Ints

    def __len__(self) -> int:
        return len(self.start_ms)

    @property
    def only_prefills(self) -> NDArray[np.bool_]:
        """Steps that prefill and run no rounds, whoever is decoding."""
        only: NDArray[np.bool_] = (self.prefill_rows > 0) & (self.decode_rows == 0)
        return only

    @property
    def duration_ms(self) -> Floats:
        """Length of each step."""
        return self.host_ms + self.target_ms + self.kv_update_ms + self.sampling_ms + self.draft_ms


@dataclass(frozen=True, slots=True)
class RequestRecords:
    """One entry per request, in the order of the workload.

    first_scheduled_step, first_token_step, finish_step: step indices of its replica, -1 if it failed.
    prefill_passes: steps in which it was scheduled to prefill. rounds: steps that scheduled it to decode.
    num_drafts: rounds that verified at least one draft. accepted_tokens: as the sampler counts, before the cut at the
    end. draft_tokens_cut: accepted drafts past the end, never delivered. own_prefill_ms: target cost of its own rows
    alone, summed over its steps up to the first token.
    """

    arrival_ms: Floats
    status: Ints
    replica: Ints
    output_tokens: Ints
    first_scheduled_step: Ints
    first_token_step: Ints
    finish_step: Ints
    preemptions: Ints
    prefill_passes: Ints
    rounds: Ints
    num_drafts: Ints
    draft_tokens: Ints
    accepted_tokens: Ints
    draft_tokens_cut: Ints
    own_prefill_ms: Floats

    def __len__(self) -> int:
        return len(self.arrival_ms)


@dataclass(frozen=True, slots=True)
class Segments:
    """Runs of consecutive steps in which a request stayed in one phase; a request's segments are in time order.

    first_step and last_step are both included. Each DECODE step delivers tokens at its own end, but those that only
    prefill leave the request out. A PREFILL segment delivers one token at its last step if `delivers`.
    """

    request: Ints
    phase: Ints
    first_step: Ints
    last_step: Ints
    delivers: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SamplerCounts:
    """The engine's own spec-decode counters plus what the analysis needs from every round.

    rounds: request-steps that decoded. num_drafts: rounds with at least one draft. accepted_at[i]: rounds that accepted
    draft position i + 1 (before the cut); kept_at[i]: those of them in which it lies inside the output.
    proposed_at[i]: the drafter would have proposed position i + 1, whatever k was; committed_at[i]: the acceptance
    model would have accepted it, with all before it, and it lies inside the output (so position K + 1 is in both).
    delivered_at[i]: tokens that the same rounds would have delivered with i drafts, i = 0..K + 1, cut at the end.
    committed_by_rounds: tokens that rounds delivered, first tokens not counted.
    """

    rounds: int
    num_drafts: int
    draft_tokens: int
    accepted_tokens: int
    draft_tokens_cut: int
    committed_by_rounds: int
    accepted_at: Ints
    kept_at: Ints
    proposed_at: Ints
    committed_at: Ints
    delivered_at: Ints


@dataclass(frozen=True, slots=True)
class Records:
    """Everything one arm left behind in one replication.

    async_delivery: tokens leave before the step's drafting. usable_blocks: of all replicas together; None: unlimited.
    prefix_cache: prompt tokens looked up on first admission, and found; None without a cache.
    """

    steps: list[Steps]
    requests: RequestRecords
    segments: Segments
    counts: SamplerCounts
    async_delivery: bool
    usable_blocks: int | None
    prefix_cache: tuple[int, int] | None = None

    def delivery_ms(self, replica: int) -> Floats:
        """When each step's tokens leave the engine: before drafting if scheduled asynchronously, else at its end."""
        steps = self.steps[replica]
        end = steps.start_ms + steps.duration_ms
        return end - steps.draft_ms if self.async_delivery else end
