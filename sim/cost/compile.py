"""From a calibration to the compiled costs of one arm."""

from __future__ import annotations

from collections.abc import Iterable

from ..inputs.calibration import AffineCosts, Calibration, TableCosts
from .affine_costs import AffineStepCosts
from .round_costs import RoundStepCosts
from .step_costs import StepCosts
from .table_costs import TableStepCosts


def compile_costs(
    calibration: Calibration, num_speculative_tokens: int, also: Iterable[int] = (), *, draft_extend: bool = False
) -> StepCosts:
    """Costs of an arm that drafts `num_speculative_tokens` per round (0: none).

    also: shorter drafts that a schedule or policy chooses; an engine captures CUDA graphs for each of them.
    draft_extend: the drafter's first pass takes one row of each decoding request, as in SGLang, where it follows the
    verification; else all rows of the target pass. Prompt rows are its own prefill in both.
    """
    costs = calibration.costs
    if isinstance(costs, AffineCosts):
        return AffineStepCosts(costs, calibration.fitted_range, draft_extend=draft_extend)
    if isinstance(costs, TableCosts):
        lengths = {num_speculative_tokens, *also}
        return TableStepCosts(costs, lengths, calibration.name, draft_extend=draft_extend)
    return RoundStepCosts(costs)
