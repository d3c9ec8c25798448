"""What a reader of a tuning result has to know beside the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..inputs.arm_checks import RESERVED
from ..inputs.load import LoadedScenario
from .load_store import LoadStore
from .plan import RunPlan
from .run_warnings import MOST_EXTRAPOLATED


def tune_warnings(
    plan: RunPlan, loaded: LoadedScenario, store: LoadStore, scopes: Sequence[Mapping[str, Any]], longest: int
) -> list[str]:
    """Warnings of the plan, then what tuning leaves out, and where its numbers lie beyond what was measured."""
    warnings = [text for text in plan.warnings if not text.startswith("arm ")]
    ignored = [name for name in loaded.scenario.arms if name not in RESERVED]
    if ignored:
        warnings.append(f"tune has arms of its own; those of the scenario are not used: {', '.join(ignored)}")
    depths = [one.measured_depth for one in store.every if one.measured_depth is not None]
    if depths and longest > min(depths):
        warnings.append(f"acceptance is measured for {min(depths)} draft positions: longer drafts hold the last rate")
    beyond = [
        part["concurrency"]
        for scope in scopes
        for part in scope["by_concurrency"]
        if any((row["extrapolated_share"] or 0.0) > MOST_EXTRAPOLATED for row in part["fixed"])
    ]
    if beyond:
        numbers = ", ".join(map(str, sorted(set(beyond))))
        warnings.append(
            f"more than {MOST_EXTRAPOLATED:.0%} of the time lies beyond the calibrated range at {numbers} users"
        )
    failed = sum(one.failed for one in store.every)
    if failed:
        warnings.append(f"{failed} simulated requests can never fit into the engine and were refused")
    return warnings
