"""One step of rounds taken apart: the terms of the cost model, and those of the target and the draft split further."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..cost.affine_costs import AffineStepCosts
from ..cost.round_costs import RoundStepCosts
from ..cost.step_costs import GraphMode, StepCosts, StepShape, StepTerms, round_shape
from ..cost.table_costs import TableStepCosts


class StepParts(NamedTuple):
    """A step of `batch` requests that draft up to `drafts` tokens each; `rows` says how many of them it verifies.

    context_tokens: computed tokens of one request. padded_rows: what the target computes, rows that only fill up a
    captured size included. parts: milliseconds by part, those that the calibration does not know left out; they add up
    to host plus device. step_ms: scheduled asynchronously, the longer of both.
    """

    batch: int
    drafts: int
    context_tokens: int
    rows: int
    padded_rows: int
    graph: str
    parts: dict[str, float]
    step_ms: float
    extrapolated: bool

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return self._asdict()


def step_parts(
    costs: StepCosts,
    batch: int,
    drafts: int,
    context_tokens: int,
    draft_passes: int,
    *,
    asynchronous: bool,
    draft_tokens: int | None = None,
) -> StepParts:
    """Take one step apart. draft_passes: 0 where no drafter is loaded. draft_tokens: by default `drafts` a request."""
    shape = round_shape(batch, drafts, batch * context_tokens)
    if draft_tokens is not None:
        shape = shape._replace(draft_tokens=draft_tokens)
    terms = costs.terms(shape, draft_passes)
    rows = padded = batch + shape.draft_tokens
    if isinstance(costs, TableStepCosts):
        padded = costs.launch(batch, rows, 0)[1]
    first_ms = costs.terms(shape, 1).draft if draft_passes else 0.0
    parts = {"host": terms.host, **_target_parts(costs, shape, terms)}
    parts |= {"sampling": terms.sampling, "kv_update": terms.kv_update}
    parts |= {"draft_first_pass": first_ms, "draft_narrow_passes": terms.draft - first_ms}
    return StepParts(
        batch,
        drafts,
        context_tokens,
        rows,
        padded,
        GraphMode(terms.graph).name.lower(),
        {name: ms for name, ms in parts.items() if ms > 0},
        terms.host_and_step_ms(asynchronous)[1],
        bool(terms.extrapolated),
    )


def _target_parts(costs: StepCosts, shape: StepShape, terms: StepTerms) -> dict[str, float]:
    if isinstance(costs, RoundStepCosts):
        return {"whole_round": terms.target}
    rows = shape.decodes + shape.draft_tokens
    attention_ms = head_ms = 0.0
    if isinstance(costs, AffineStepCosts):
        attention_ms = costs.target_kv_ms * shape.context_tokens
    if isinstance(costs, TableStepCosts):
        head_ms = costs.head.at(rows) if costs.head else 0.0
        line = costs.attention.line(shape.decodes, rows) if costs.attention else None
        attention_ms = line.at(shape.context_tokens / shape.decodes) if line else 0.0
    return {"dense": terms.target - head_ms - attention_ms, "head": head_ms, "attention": attention_ms}
