"""What a planned step looks like to the cost model: rows, contexts and prompt chunks."""

from __future__ import annotations

from ..cost.step_costs import StepShape, round_shape
from .rows import StepPlan


def step_shape(plan: StepPlan, drafts: int, settled_context: int) -> StepShape:
    """The shape of a plan; settled rows verify `drafts` drafts each and have computed `settled_context` tokens."""
    settled = round_shape(plan.settled, drafts, settled_context if plan.settled else 0)
    if not plan.rows:
        return settled
    decodes, draft_tokens, context, _, _, _ = settled
    chunks = []
    finished_prompts = finished_context = 0
    for row, tokens, start, verified, is_decode in plan.rows:
        if is_decode:
            decodes += 1
            draft_tokens += verified
            context += start
        else:
            chunks.append((tokens, start))
            if start + tokens >= row.known_tokens:
                finished_prompts += 1
                finished_context += start + tokens
    return StepShape(decodes, draft_tokens, context, chunks, finished_prompts, finished_context)
