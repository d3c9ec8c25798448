"""Costs linear in rows and context, compiled to plain floats."""

from __future__ import annotations

import numpy as np

from ..inputs.calibration import AffineCosts, FittedRange
from .step_costs import Floats, GraphMode, RoundTable, StepShape, StepTerms


class AffineStepCosts:
    """Costs linear in rows and context (`AffineCosts`), compiled to plain floats in ms.

    draft_extend: as in `compile_costs`.
    """

    def __init__(
        self, costs: AffineCosts, fitted_range: FittedRange | None = None, *, draft_extend: bool = False
    ) -> None:
        self._draft_extend = draft_extend
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

    def terms(self, shape: StepShape, draft_passes: int) -> StepTerms:
        """Cost of a step; draft_passes: serial passes of the drafter, 0 without one."""
        decodes, draft_tokens, context, chunks, finished_prompts, finished_prompt_context = shape
        rows = decodes + draft_tokens
        target = target_decode = self.target_ms(rows, context)
        if chunks:
            for tokens, start in chunks:
                rows += tokens
                context += start
            target = self.target_ms(rows, context)
        draft = 0.0
        if draft_passes:
            wide_rows = rows - draft_tokens if self._draft_extend else rows
            draft = self.draft_fixed_ms + self.draft_row_ms * wide_rows + self.draft_kv_ms * context
            if draft_passes > 1:
                narrow_rows = decodes + finished_prompts
                narrow_context = shape.context_tokens + finished_prompt_context
                draft += (draft_passes - 1) * (
                    self.draft_fixed_ms + self.draft_row_ms * narrow_rows + self.draft_kv_ms * narrow_context
                )
        sampling = self.sampling_ms if decodes or finished_prompts else 0.0
        kv_update = self.kv_update_row_ms * rows
        return StepTerms(
            self.host_ms,
            target,
            target_decode,
            kv_update,
            sampling,
            draft,
            decodes > self.max_decode_batch,
            GraphMode.NONE,
        )

    def rounds(self, decodes: int, drafts: int, context_tokens: Floats, draft_passes: int) -> RoundTable:
        """Cost of several steps that are rounds of the same requests; the same numbers as `terms` gives one by one."""
        table = np.empty((6, len(context_tokens)))
        rows = decodes * (1 + drafts)
        draft_ms: Floats | float = 0.0
        if draft_passes:
            wide_rows = decodes if self._draft_extend else rows
            draft_ms = self.draft_fixed_ms + self.draft_row_ms * wide_rows + self.draft_kv_ms * context_tokens
            if draft_passes > 1:
                draft_ms = draft_ms + (draft_passes - 1) * (
                    self.draft_fixed_ms + self.draft_row_ms * decodes + self.draft_kv_ms * context_tokens
                )
        table[0] = self.host_ms
        table[1] = table[2] = self.target_fixed_ms + self.target_row_ms * rows + self.target_kv_ms * context_tokens
        table[3] = self.kv_update_row_ms * rows
        table[4] = self.sampling_ms
        table[5] = draft_ms
        return RoundTable(table, decodes > self.max_decode_batch, GraphMode.NONE)

    def chunk_ms(self, rows: int, context_tokens: int, finishes: bool) -> float:
        """A target pass over nothing but one prompt chunk; logits cost nothing apart here."""
        return self.target_ms(rows, context_tokens)

    def target_ms(self, rows: int, context_tokens: int) -> float:
        """One pass of the target over `rows` rows; a pass without rows is not run."""
        if not rows:
            return 0.0
        return self.target_fixed_ms + self.target_row_ms * rows + self.target_kv_ms * context_tokens
