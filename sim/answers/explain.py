"""`specsim explain`: one step taken apart, beside the same step without speculation. Nothing is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..cost.compile import compile_costs
from ..engine.loop import Pool
from ..inputs.arms import resolve_arms
from ..inputs.calibration import Calibration, TableCosts
from ..inputs.errors import InputError
from ..inputs.load import load_scenario
from ..inputs.source import Finding, Mark, placed
from ..inputs.wording import did_you_mean, listed, shown
from .look import knows_drafting
from .next_stair import next_stair
from .plan import ArmPlan, plan_run
from .sglang_settings import sglang_lookahead
from .step_parts import StepParts, step_parts
from .typical_step import Guess, TypicalRound, mean_context, sampled_requests, typical_batch, typical_round

EXPLAIN_SCHEMA = "specsim-explain/1"
HERE = Mark("specsim explain", 1, 1)
GIVEN = "given"


def explain(
    path: Path | None,
    sets: Sequence[str] = (),
    *,
    arm: str | None = None,
    batch: int | None = None,
    context_tokens: int | None = None,
    drafts: int | None = None,
) -> dict[str, Any]:
    """One step of an arm (default: the first that drafts) as a JSON object; ms, tokens and rows.

    Numbers that are not given are taken from the scenario and say so. Raises InputError.
    """
    loaded = load_scenario(path, sets)
    plan = plan_run(loaded)
    chosen = _chosen(arm, plan.arms)
    calibration = next(one.calibration for one in resolve_arms(loaded) if one.name == chosen.name)
    if drafts is not None:
        _check_drafts(drafts, chosen)
        chosen = _with_drafts(chosen, calibration, drafts)
    requests = sampled_requests(loaded, chosen)
    context = mean_context(requests) if context_tokens is None else Guess(context_tokens, GIVEN)
    typical = typical_round(chosen, requests, loaded.scenario.run.seed, loaded.base_dir.resolve())
    if batch is None:
        size = typical_batch(chosen, loaded.scenario, requests, context.value, typical)
    else:
        size = Guess(batch, GIVEN)
    return _document(chosen, calibration, size, context, typical, plan.warnings)


def _document(
    arm: ArmPlan,
    calibration: Calibration,
    batch: Guess,
    context: Guess,
    typical: TypicalRound,
    warnings: Sequence[str],
) -> dict[str, Any]:
    step = _parts(arm, batch.value, context.value, typical.verified)
    plain = _parts(_with_drafts(arm, calibration, 0), batch.value, context.value, 0.0)
    stair = next_stair(calibration, batch.value, arm.drafts)
    return {
        "schema": EXPLAIN_SCHEMA,
        "specsim_version": __version__,
        "arm": arm.name,
        "calibration": {"name": calibration.name, "kind": calibration.kind},
        "batch": batch._asdict(),
        "context_tokens": context._asdict(),
        "async_scheduling": arm.settings.async_scheduling,
        "step": step.document() | _per_token(step, typical.committed),
        "without_speculation": plain.document() | _per_token(plain, 1.0),
        "ridge_rows": ridge_rows(calibration),
        "next_stair": stair.document() if stair else None,
        "warnings": [*warnings, *_warnings(calibration, step, plain)],
    }


def ridge_rows(calibration: Calibration) -> float | None:
    """Rows at which computing takes as long as reading the weights; None where the roofline is not known."""
    roofline = calibration.costs.roofline if isinstance(calibration.costs, TableCosts) else None
    if roofline is None:
        return None
    flops_per_byte = 1e3 * roofline.tflop_per_s / roofline.bandwidth_gb_per_s
    return flops_per_byte * roofline.weight_bytes / roofline.flops_per_row


def _chosen(name: str | None, arms: Sequence[ArmPlan]) -> ArmPlan:
    if name is None:
        return next((arm for arm in arms if arm.drafts), arms[0])
    by_name = {arm.name: arm for arm in arms}
    if name not in by_name:
        what, rule = f"no arm is called {shown(name)}", f"the arms are {listed(by_name)}"
        remedy = did_you_mean(name, by_name, "name one of them")
        raise InputError([placed(HERE, Finding("--arm", what, rule, remedy))])
    return by_name[name]


def _check_drafts(drafts: int, arm: ArmPlan) -> None:
    """More drafts than none need an arm whose acceptance and memory know speculation."""
    if drafts and not arm.drafts:
        what, rule = f"{drafts} drafts for arm {arm.name}", "that arm drafts nothing"
        remedy = "name an arm with speculation, or add `speculation: …`"
        raise InputError([placed(HERE, Finding("--drafts", what, rule, remedy))])


def _with_drafts(arm: ArmPlan, calibration: Calibration, drafts: int) -> ArmPlan:
    sglang = arm.settings.style == "sglang"
    lookahead = drafts if arm.settings.lookahead else 0
    settings = replace(
        arm.settings,
        num_speculative_tokens=drafts,
        lookahead=sglang_lookahead(drafts) if sglang else lookahead,
    )
    return replace(arm, pools=(Pool(settings, compile_costs(calibration, drafts, draft_extend=sglang)),))


def _parts(arm: ArmPlan, batch: int, context: int, verified: float) -> StepParts:
    """A step whose rounds verify `verified` drafts in the mean: a look-up without a match has none."""
    return step_parts(
        arm.costs,
        batch,
        arm.drafts,
        context,
        arm.passes(arm.drafts),
        asynchronous=arm.settings.async_scheduling,
        draft_tokens=round(batch * verified),
    )


def _per_token(step: StepParts, committed: float | None) -> dict[str, float | None]:
    """What a request waits for one token: the step over the tokens that a round commits."""
    per_token = step.step_ms / committed if committed else None
    return {"committed_tokens_per_round": committed, "ms_per_committed_token": per_token}


def _warnings(calibration: Calibration, step: StepParts, plain: StepParts) -> list[str]:
    warnings = []
    if step.drafts and not knows_drafting(calibration):
        warnings.append(f"calibration {calibration.name} knows no drafter: drafting costs nothing here")
    if isinstance(calibration.costs, TableCosts) and calibration.costs.graphs and step.graph == "eager":
        warnings.append(
            f"no captured size holds {step.rows} rows at {1 + step.drafts} a request, so the step runs eagerly: "
            f"capture {step.rows}"
        )
    if step.extrapolated or plain.extrapolated:
        warnings.append("this step lies beyond the calibrated range")
    return warnings
