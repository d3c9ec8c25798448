"""The engine's limits after defaults and memory are settled: plain integers, as the scheduler uses them."""

from __future__ import annotations

from dataclasses import dataclass

from .sglang_limits import SglangLimits

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One replica's limits, in the engine's own words.

    max_num_batched_tokens: input budget of a step, which also pays `draft_slots` per scheduled row.
    max_num_scheduled_tokens: token budget of a step; equal to the input budget unless set.
    num_gpu_blocks: KV blocks of one replica, one of which is the null block; None: unlimited.
    num_speculative_tokens: most drafts per round (K); 0 without speculation. lookahead: KV slots kept per row for them.
    draft_schedule[n]: drafts proposed by a step of n requests, the last entry for all larger ones; None: always K.
    draft_policy: "fixed", "schedule", "goodput" or "clairvoyant".
    serial_drafting: a pass of the drafter for each draft token; else one pass or look-up for all of them.
    scheduling_policy: "fcfs" or "priority".
    prefix_caching: blocks are kept by content. drops_last_hit: an EAGLE-type drafter has to recompute the last block
    that the cache would give. pads_single_tokens: rule 17.
    sglang: limits that only that style has.
    """

    style: str
    max_num_seqs: int
    max_num_batched_tokens: int
    max_num_scheduled_tokens: int
    block_size: int
    num_gpu_blocks: int | None
    max_model_len: int | None = None
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    adaptive_long_prefill_threshold: bool = False
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    num_speculative_tokens: int = 0
    lookahead: int = 0
    draft_slots: int = 0
    draft_schedule: tuple[int, ...] | None = None
    draft_policy: str = "fixed"
    serial_drafting: bool = True
    scheduling_policy: str = "fcfs"
    prefix_caching: bool = False
    drops_last_hit: bool = False
    pads_single_tokens: bool = False
    async_scheduling: bool = False
    replicas: int = 1
    router: str = "round_robin"
    sglang: SglangLimits | None = None

    @property
    def varies(self) -> bool:
        """Whether a schedule or policy changes the draft length."""
        return self.draft_schedule is not None or self.draft_policy != "fixed"

    def draft_lengths(self) -> set[int]:
        """Every number of drafts that a step may propose."""
        if self.draft_schedule is not None:
            return set(self.draft_schedule[1:])
        if self.draft_policy != "fixed":
            return set(range(self.num_speculative_tokens + 1))
        return {self.num_speculative_tokens}

    @property
    def longest(self) -> int:
        """The most known tokens that a request can have: `max_model_len`, or no limit that anybody reaches."""
        return self.max_model_len or UNLIMITED

    @property
    def delivers_before_drafting(self) -> bool:
        """Whether a step's tokens leave before its drafts are made; in SGLang a round ends with drafting."""
        return self.async_scheduling and self.style != "sglang"
