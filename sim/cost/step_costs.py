"""The cost of one engine step, from what was scheduled to milliseconds per phase.

A draft round is one first pass over all rows of the step, which also is the drafter's own prefill, and narrow passes
over the requests that draft on: vLLM's shape of chain drafting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..inputs.calibration import AffineCosts, FittedRange


class StepTerms(NamedTuple):
    """Milliseconds of one step by phase; the phases run one after another.

    host: all of the host's work (the engine decides how much of it the device hides). target: dense layers, head and
    attention. target_decode: the target's cost without the step's prefill rows. extrapolated: beyond the fitted range.
    """

    host: float
    target: float
    target_decode: float
    kv_update: float
    sampling: float
    draft: float
    extrapolated: bool


class AffineStepCosts:
    """Costs linear in rows and context (`AffineCosts`), compiled to plain floats in ms."""

    def __init__(self, costs: AffineCosts, fitted_range: FittedRange | None = None) -> None:
        self.host_ms = costs.host_ms
        self.target_fixed_ms = costs.target_fixed_ms
        self.target_row_ms = costs.target_per_token_us * 1e-3
        self.target_kv_ms = costs.target_per_kv_token_ns * 1e-6
        self.draft_fixed_ms = costs.draft_fixed_ms
        self.draft_row_ms = costs.draft_per_token_us * 1e-3
        self.draft_kv_ms = costs.draft_per_kv_token_ns * 1e-6
        self.sampling_ms = costs.sampling_fixed_ms
        self.kv_update_row_ms = costs.kv_update_per_token_us * 1e-3
        limit = fitted_range.max_decode_batch if fitted_range else None
        self.max_decode_batch = limit if limit is not None else 1 << 62

    def terms(
        self,
        decodes: int,
        decode_rows: int,
        decode_context: int,
        chunks: Sequence[tuple[int, int]] = (),
        finished_prompts: int = 0,
        finished_prompt_context: int = 0,
        draft_passes: int = 0,
    ) -> StepTerms:
        """Cost of a step.

        decodes: requests that decode; decode_rows: their target rows (1 + drafts each); decode_context: the sum of
        their computed tokens. chunks: (tokens, start) of every prefill row. finished_prompts: how many of those
        complete, with the sum of their contexts. draft_passes: serial passes of the drafter, 0 without one.
        """
        context = decode_context
        rows = decode_rows
        target_decode = self.target_fixed_ms + self.target_row_ms * rows + self.target_kv_ms * context
        target = target_decode
        if chunks:
            for tokens, start in chunks:
                rows += tokens
                context += start
            target = self.target_fixed_ms + self.target_row_ms * rows + self.target_kv_ms * context
        draft = 0.0
        if draft_passes:
            draft = self.draft_fixed_ms + self.draft_row_ms * rows + self.draft_kv_ms * context
            if draft_passes > 1:
                draft += (draft_passes - 1) * (
                    self.draft_fixed_ms
                    + self.draft_row_ms * (decodes + finished_prompts)
                    + self.draft_kv_ms * (decode_context + finished_prompt_context)
                )
        sampling = self.sampling_ms if decodes or finished_prompts else 0.0
        return StepTerms(
            self.host_ms,
            target,
            target_decode,
            self.kv_update_row_ms * rows,
            sampling,
            draft,
            decodes > self.max_decode_batch,
        )

    def prefill_alone_ms(self, tokens: int, start: int) -> float:
        """Target cost of one prefill chunk with nothing else in the step."""
        return self.target_fixed_ms + self.target_row_ms * tokens + self.target_kv_ms * start
