"""What the simulator says a round costs, from tables: the one place where the profiler asks it."""

from __future__ import annotations

from sim.cost.step_costs import StepTerms, round_shape
from sim.cost.table_costs import TableStepCosts
from sim.inputs.calibration import TableCosts


def compiled(costs: TableCosts, drafts: int) -> TableStepCosts:
    """The tables as an arm of so many drafts uses them."""
    return TableStepCosts(costs, {drafts}, "the fitted tables")


def round_terms(costs: TableStepCosts, batch: int, drafts: int, context_tokens: int) -> StepTerms:
    """A round of `batch` requests with so many computed tokens in all: as many drafts are made anew as are verified."""
    return costs.terms(round_shape(batch, drafts, context_tokens), drafts if costs.drafter is not None else 0)


def round_ms(costs: TableStepCosts, batch: int, drafts: int, context_tokens: int) -> float:
    """The same as one time, host and device in series, as rounds are timed here."""
    return round_terms(costs, batch, drafts, context_tokens).host_and_step_ms(False)[1]
