"""What a planned step looks like to the cost model: rows, contexts and prompt chunks."""

from __future__ import annotations

from ..cost.step_costs import StepShape
from .rows import StepPlan


def step_shape(plan: StepPlan, settled_drafts: int, settled_context: int) -> StepShape:
    """The shape of a plan; settled rows verify `settled_drafts` drafts over `settled_context` computed tokens."""
    decodes = plan.settled
    draft_tokens, context = (settled_drafts, settled_context) if decodes else (0, 0)
    chunks: list[tuple[int, int]] = []
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
