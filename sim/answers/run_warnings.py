"""What a reader of the result has to know beside the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..analysis.batch_means import BATCHES, MIN_BATCH
from .arm_results import refused_batches
from .draft_length_notes import draft_length_notes
from .plan import ArmPlan, RunPlan
from .precision import Shortfall
from .replicate import ArmReplication

LEAST_MISSED = 0.01  # share of time outside of FULL graphs that is worth a warning
MOST_EXTRAPOLATED = 0.05  # share of simulated time beyond the calibrated range, or of tokens beyond the measured depth


def run_warnings(
    plan: RunPlan,
    by_arm: Mapping[str, list[ArmReplication]],
    arms: Mapping[str, Any],
    missing: Sequence[Shortfall] = (),
) -> list[str]:
    """Warnings of the plan, then those of each arm, then what is less precise than asked for; each sentence once."""
    warnings = list(plan.warnings)
    notes = draft_length_notes(plan, by_arm, arms)
    for arm in plan.arms:
        texts = _of_arm(arm, by_arm[arm.name], arms[arm.name]) + notes.get(arm.name, [])
        warnings += [f"arm {arm.name}: {text}" for text in texts]
    warnings += _unsteady(by_arm[plan.arms[0].name])  # the warm-up is the baseline's
    warnings += [
        f"arm {one.arm}: after {len(by_arm[one.arm])} replications the interval of {one.metric} is "
        f"+-{one.half_width:.1%} of its value, {one.wanted:.1%} was asked for: raise max_replications"
        for one in missing
    ]
    return list(dict.fromkeys(warnings))


def _of_arm(plan: ArmPlan, replications: Sequence[ArmReplication], arm: Mapping[str, Any]) -> list[str]:
    texts = []
    if arm["overload"]["detected"]:
        rate = arm["overload"]["carried_request_rate"]
        texts.append(f"overloaded, its queue grows: it carries {rate:.3g} requests per second; intervals are withheld")
    if arm["failed"]:
        texts.append(f"{arm['failed']} requests can never fit into the engine and were refused")
    texts += _missed_graphs(plan, replications)
    extrapolated = arm["extrapolated_share"] or 0.0
    if extrapolated > MOST_EXTRAPOLATED:
        texts.append(f"{extrapolated:.0%} of the simulated time lies beyond the calibrated range")
    beyond = _share_beyond_depth(replications, arm)
    if beyond > MOST_EXTRAPOLATED:
        texts.append(f"{beyond:.0%} of the tokens were committed beyond the measured draft positions")
    texts += dict.fromkeys(caveat for one in replications for caveat in one.metrics.caveats)
    if not arm["overload"]["detected"]:
        texts += _refused_batches(replications)
    return texts


def _unsteady(replications: Sequence[ArmReplication]) -> list[str]:
    """A warm-up rule that cut as much as it may says that no steady state was seen; chance does so now and then."""
    cut = sum(not one.steady for one in replications)
    if 2 * cut < len(replications) or not cut:
        return []
    of = f" in {cut} of {len(replications)} replications" if len(replications) > 1 else ""
    return [f"the warm-up rule cut half of the run{of}: no steady state was seen, ask for more requests"]


def _refused_batches(replications: Sequence[ArmReplication]) -> list[str]:
    """Metrics for which one long run gives no interval, and why."""
    why = {
        "few": f"{BATCHES} batches of too few requests ({MIN_BATCH}, for a percentile as many beyond it)",
        "correlated": "its batches are not independent",
    }
    return [
        f"no interval for {', '.join(metrics)}: {why[refusal]}; ask for more requests, or for replications"
        for refusal, metrics in refused_batches(replications).items()
    ]


def _missed_graphs(plan: ArmPlan, replications: Sequence[ArmReplication]) -> list[str]:
    """Decode steps that fell off the captured sizes, with the size that is missing."""
    found = [one.missed_graphs for one in replications if one.missed_graphs is not None]
    all_ms = sum(one.all_ms for one in found)
    if not all_ms:
        return []
    texts = []
    share = sum(one.uniform_ms for one in found) / all_ms
    if share >= LEAST_MISSED:
        worst = max(found, key=lambda one: one.uniform_ms)
        size = worst.rows if plan.capture_unit == "tokens" else worst.requests
        texts.append(
            f"{share:.0%} of the time are decode steps without a FULL CUDA graph: {worst.requests} requests of "
            f"{plan.drafts + 1} tokens are {worst.rows} rows, add {size} to the capture sizes (they count "
            f"{plan.capture_unit}) and raise their limit if it is lower"
        )
    share = sum(one.ragged_ms for one in found) / all_ms
    if share >= LEAST_MISSED:
        texts.append(
            f"{share:.0%} of the time are decode steps whose requests verify unequal numbers of drafts (not all were "
            "proposed, or a budget cut some): no FULL CUDA graph fits them"
        )
    return texts


def _share_beyond_depth(replications: Sequence[ArmReplication], arm: Mapping[str, Any]) -> float:
    """Share of output tokens that draft positions delivered beyond the depth at which acceptance was measured."""
    depth = replications[0].measured_depth
    if depth is None or not arm["total_output_tokens"]:
        return 0.0
    beyond = sum(int(one.counts.kept_at[depth:].sum()) for one in replications)
    return beyond / float(arm["total_output_tokens"])
