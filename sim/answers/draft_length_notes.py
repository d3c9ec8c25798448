"""What a reader has to know of a schedule or policy: whether a fixed length does better, and what reaching 0 costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..analysis.comparison import Comparison, compare_arms
from .plan import ArmPlan, RunPlan
from .replicate import ArmReplication

KINDS = {"schedule": "schedule", "goodput": "goodput policy", "clairvoyant": "clairvoyant bound"}
LEAST_SHARE = 0.005  # of time without proposals that is worth a sentence
METRICS = {"output_throughput": "output throughput", "mean_tpot_ms": "TPOT", "mean_e2el_ms": "E2E latency"}


def draft_length_notes(
    plan: RunPlan, by_arm: Mapping[str, Sequence[ArmReplication]], arms: Mapping[str, Any]
) -> dict[str, list[str]]:
    """By arm, for those whose draft length is not fixed."""
    notes = {}
    for arm in plan.arms:
        if arm.settings.varies:
            texts = _against_fixed(arm, plan, by_arm, arms) + _residual(arm, arms[arm.name])
            notes[arm.name] = texts
    return notes


def _against_fixed(
    arm: ArmPlan, plan: RunPlan, by_arm: Mapping[str, Sequence[ArmReplication]], arms: Mapping[str, Any]
) -> list[str]:
    kind = KINDS["schedule" if arm.settings.draft_schedule is not None else arm.settings.draft_policy]
    fixed = [
        other for other in plan.arms if other.drafts and not other.settings.varies and _same_but_length(arm, other)
    ]
    if not fixed:
        return [f"its {kind} is not compared with a fixed length: add an arm with one"]
    texts = []
    for other in fixed:
        overloaded = any(arms[name]["overload"]["detected"] for name in (arm.name, other.name))
        found = compare_arms(
            [one.metrics for one in by_arm[arm.name]],
            [one.metrics for one in by_arm[other.name]],
            overloaded=overloaded,
        )
        texts.append(_verdict(kind, other, {name: found[name] for name in METRICS if name in found}))
    return texts


def _same_but_length(arm: ArmPlan, other: ArmPlan) -> bool:
    if [pool.slices for pool in arm.pools] != [pool.slices for pool in other.pools] or not other.has_one_length:
        return False
    drafts = arm.settings.num_speculative_tokens
    fixed = replace(
        other.settings,
        num_speculative_tokens=drafts,
        lookahead=arm.settings.lookahead,
        num_gpu_blocks=arm.settings.num_gpu_blocks,
        draft_schedule=arm.settings.draft_schedule,
        draft_policy=arm.settings.draft_policy,
    )
    same_costs = other.calibration == arm.calibration
    return same_costs and fixed == arm.settings and other.slices == arm.slices


def _verdict(kind: str, fixed: ArmPlan, found: Mapping[str, Comparison]) -> str:
    """Tested differences decide; with one replication the plain ratios do, and are called untested."""
    tested = [name for name, row in found.items() if row["verdict"] != "not_tested"]
    if tested:
        better = [name for name in tested if found[name]["verdict"] == "better"]
        worse = [name for name in tested if found[name]["verdict"] == "worse"]
        aside = ""
    else:
        better = [name for name, row in found.items() if _gain(name, row) > 0]
        worse = [name for name, row in found.items() if _gain(name, row) < 0]
        aside = " (not tested)"
    numbers = ", ".join(f"{METRICS[name]} {row['ratio']:.3g}x" for name, row in found.items() if row["ratio"])
    length = f"the fixed {fixed.drafts} drafts of arm {fixed.name}"
    if worse and not better:
        return f"its {kind} does worse than {length}: {numbers}{aside}; take the fixed length"
    if better and not worse:
        return f"its {kind} does better than {length}: {numbers}{aside}"
    if better:
        return f"its {kind} is a trade against {length}: {numbers}{aside}"
    return f"no difference shown between its {kind} and {length}: {numbers}; the fixed length is simpler"


def _gain(name: str, row: Comparison) -> float:
    if row["ratio"] is None:
        return 0.0
    return row["ratio"] - 1 if name == "output_throughput" else 1 - row["ratio"]


def _residual(arm: ArmPlan, result: Mapping[str, Any]) -> list[str]:
    off = [row for row in result["draft_length"] if row["drafts"] == 0 and row["drafting_ms_per_step"] > 0]
    if not off or off[0]["time_share"] < LEAST_SHARE:
        return []
    return [
        f"steps that propose nothing are {off[0]['time_share']:.0%} of its time and still pay "
        f"{off[0]['drafting_ms_per_step']:.3g} ms each for the drafter's first pass"
    ]
