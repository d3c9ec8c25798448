"""From a calibration to the compiled costs of one arm."""

from __future__ import annotations

from ..inputs.calibration import AffineCosts, Calibration
from .affine_costs import AffineStepCosts
from .step_costs import StepCosts


def compile_costs(calibration: Calibration, num_speculative_tokens: int) -> StepCosts:
    """Costs of an arm that drafts `num_speculative_tokens` per round (0: none)."""
    if isinstance(calibration.costs, AffineCosts):
        return AffineStepCosts(calibration.costs, calibration.fitted_range)
    raise NotImplementedError
