"""The arms that `specsim tune` compares: no speculation, every fixed draft length, schedules, the goodput policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..inputs.arm_overrides import LENGTHS
from ..inputs.checks import scenario_findings
from ..inputs.errors import InputError
from ..inputs.load import LoadedScenario
from ..inputs.scenario import Scenario
from ..inputs.source import Source
from .plan import ArmPlan, plan_run

OFF, ZERO, GOODPUT, SCHEDULE = "off", "reached 0", "goodput", "schedule"
DEFAULT_MOST_DRAFTS = 8
EVERY_BATCH = 1_000_000

Ranges = Sequence[Sequence[int]]
Changes = Mapping[str, Any]


def check_tunable(loaded: LoadedScenario) -> None:
    """Raises InputError where there is nothing to tune."""
    if loaded.scenario.speculation is None:
        rule = "tune chooses its draft length"
        raise InputError([loaded.problem("speculation", "is missing", rule, "add `speculation: {method: …}`")])
    problems = [
        loaded.problem(
            f"arms.{name}.{key}",
            "states other outputs for one arm",
            "draft lengths are compared on the same outputs",
            "remove it",
        )
        for name, overrides in loaded.scenario.arms.items()
        for key in overrides
        if key in LENGTHS and name in ("baseline", "speculative")
    ]
    if problems:
        raise InputError(problems)


def longest_drafts(own: int, measured_depth: int | None) -> int:
    """The longest draft to try: the scenario's own, or as far as its acceptance is measured, at most 8."""
    return max(1, own, min(DEFAULT_MOST_DRAFTS, measured_depth or DEFAULT_MOST_DRAFTS))


def fixed_name(drafts: int) -> str:
    """The arm of a fixed draft length; 0: no speculation."""
    return f"k{drafts}" if drafts else OFF


def schedule_overrides(ranges: Ranges) -> dict[str, Any]:
    """What makes an arm follow a schedule; the drafter stays loaded for its longest draft, at least one token."""
    return {
        "speculation.num_speculative_tokens": max(1, *(drafts for _, _, drafts in ranges)),
        "speculation.num_speculative_tokens_per_batch_size": [list(one) for one in ranges],
        "speculation.policy": "fixed",
    }


def tuned_arms(most_drafts: int) -> dict[str, dict[str, Any]]:
    """Overrides of every arm that needs no result: fixed lengths, a schedule that is always at 0, goodput."""
    fixed = {"speculation.num_speculative_tokens_per_batch_size": None, "speculation.policy": "fixed"}
    arms = {
        fixed_name(drafts): {"speculation.num_speculative_tokens": drafts} | fixed
        for drafts in range(1, most_drafts + 1)
    }
    longest = {"speculation.num_speculative_tokens": most_drafts}
    arms[ZERO] = schedule_overrides([[1, EVERY_BATCH, 0]]) | longest
    arms[GOODPUT] = longest | fixed | {"speculation.policy": "goodput"}
    return arms


def with_arms(loaded: LoadedScenario, arms: Mapping[str, Changes], engine: Changes | None = None) -> LoadedScenario:
    """The same scenario with these arms in place of its own, and changes to `engine` for all of them.

    Raises InputError where a draft length does not fit into the engine's limits.
    """
    data = dict(loaded.data)
    data["engine"] = {**(data.get("engine") or {}), **(engine or {})}
    own = data.get("arms") or {}
    kept = {name: own[name] for name in ("baseline", "speculative") if name in own}
    stated = {key: own["speculative"][key] for key in ("success_rate",) if key in own.get("speculative", {})}
    data["arms"] = kept | {name: {**stated, **changes} for name, changes in arms.items()}
    source = Source(loaded.source.file, loaded.base_dir, data, loaded.source.marks, loaded.source.keys)
    problems = [source.problem(finding) for finding in scenario_findings(data)]
    if problems:
        raise InputError(dict.fromkeys(problems))
    calibrations = {"calibration": loaded.calibrations["calibration"]}
    return LoadedScenario(Scenario.model_validate(data), source, calibrations)


ONE_REPLICA: Changes = {"pools": None, "replicas": 1}


def arm_plans(loaded: LoadedScenario, arms: Mapping[str, Changes], engine: Changes | None = None) -> dict[str, ArmPlan]:
    """Arms ready to run, by name; the baseline under the name `off`."""
    plans = plan_run(with_arms(loaded, arms, engine)).arms
    named = [replace(arm, name=OFF) if arm.name == "baseline" else arm for arm in plans if arm.name != "speculative"]
    return {arm.name: arm for arm in named}
