"""From a calibration to the compiled costs of one arm."""

from __future__ import annotations

from collections.abc import Iterable

from ..inputs.calibration import AffineCosts, Calibration, TableCosts
from .affine_costs import AffineStepCosts
from .round_costs import RoundStepCosts
from .step_costs import StepCosts
from .table_costs import TableStepCosts


def compile_costs(calibration: Calibration, num_speculative_tokens: int, also: Iterable[int] = ()) -> StepCosts:
    """Costs of an arm that drafts `num_speculative_tokens` per round (0: none).

    also: shorter drafts that a schedule or policy chooses; an engine captures CUDA graphs for each of them.
    """
    costs = calibration.costs
    if isinstance(costs, AffineCosts):
        return AffineStepCosts(costs, calibration.fitted_range)
    if isinstance(costs, TableCosts):
        return TableStepCosts(costs, {num_speculative_tokens, *also}, calibration.name)
    return RoundStepCosts(costs)
