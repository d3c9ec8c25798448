"""`specsim tune`: the best draft length at each load, for each slice and the mix, and what to set in the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import __version__
from ..acceptance.build import build_runs
from ..engine.settings import EngineSettings
from ..inputs.errors import InputError
from ..inputs.load import LoadedScenario, load_scenario
from ..inputs.resolved import resolved_scenario
from ..inputs.source import Finding, Mark, placed
from .closed_load import Load, LoadTask, Scope, closed_requests, scopes_of
from .executors import Mapped, workers
from .load_store import LoadStore, Progress
from .plan import ArmPlan, RunPlan, plan_run
from .tune_advice import advice
from .tune_arms import (
    ONE_REPLICA,
    SCHEDULE,
    ZERO,
    arm_plans,
    check_tunable,
    fixed_name,
    longest_drafts,
    schedule_overrides,
    tuned_arms,
)
from .tune_batches import batch_object
from .tune_schedule import break_even_concurrency, scope_schedule
from .tune_traffic import Traffic, run_traffic
from .tune_warnings import tune_warnings

TUNE_SCHEMA = "specsim-tune/1"
FEWEST_REPLICATIONS = 5
HERE = Mark("specsim tune", 1, 1)


def tune_scenario(
    path: Path | None,
    sets: Sequence[str] = (),
    *,
    batches: Sequence[int] | None = None,
    most_drafts: int | None = None,
    replications: int | None = None,
    jobs: int = 1,
    progress: Progress = lambda done, total, label: None,
) -> dict[str, Any]:
    """The result of `specsim tune` as one JSON object, the same for any number of jobs.

    batches: concurrencies to simulate; default 1, 2, 4, .. up to max_num_seqs. most_drafts: lengths 0 to this one;
    default: the scenario's or as far as its acceptance is measured, at most 8. replications: default the scenario's, at
    least 5. Raises InputError.
    """
    loaded = load_scenario(path, sets)
    check_tunable(loaded)
    plan = plan_run(loaded)
    limits = plan.arms[1].settings
    ladder = _ladder(batches, limits.max_num_seqs)
    count = replications or max(FEWEST_REPLICATIONS, loaded.scenario.run.replications)
    scopes = scopes_of(loaded.scenario)
    longest = most_drafts or longest_drafts(limits.num_speculative_tokens, _measured_depth(loaded, scopes[0], plan))
    plans = arm_plans(loaded, tuned_arms(longest), ONE_REPLICA)
    task = LoadTask(loaded.scenario, loaded.base_dir.resolve(), longest + 1)
    with workers(jobs) as pool:
        mapped = pool.executor.map
        store = LoadStore(loaded, task, count, mapped, progress)
        arms = [arm for name, arm in plans.items() if name != ZERO]
        store.simulate([(scope, batch, arms) for scope in scopes for batch in ladder], "closed loads")
        parts = [_scope_object(store, loaded, scope, ladder, plans, limits.max_num_seqs, longest) for scope in scopes]
        found = _own_traffic(loaded, parts[0]["schedule"]["ranges"], longest, limits, count, mapped, progress)
        given = advice(loaded, store, scopes, parts[0], found, limits, longest, count, mapped, progress)
    calibration = loaded.calibrations["calibration"]
    return {
        "schema": TUNE_SCHEMA,
        "specsim_version": __version__,
        "seed": loaded.scenario.run.seed,
        "replications": count,
        "scenario": resolved_scenario(loaded),
        "calibration": {
            "name": calibration.name,
            "kind": calibration.kind,
            "heldout": calibration.heldout.model_dump() if calibration.heldout else None,
        },
        "warnings": tune_warnings(plan, loaded, store, parts, longest),
        "concurrencies": list(ladder),
        "draft_lengths": list(range(longest + 1)),
        "scopes": parts,
        **given,
    }


def _measured_depth(loaded: LoadedScenario, mix: Scope, plan: RunPlan) -> int | None:
    """Draft positions that the acceptance of every slice was measured for; None where no model has an end."""
    task = LoadTask(loaded.scenario, loaded.base_dir.resolve(), 1)
    requests = closed_requests(task, Load(mix, 1, (), 0), loaded.problem)
    models = [part.acceptance for part in plan.arms[1].slices]
    return build_runs(requests, models, 1, loaded.scenario.run.seed, 0, task.base_dir).measured_depth


def _ladder(batches: Sequence[int] | None, most: int) -> list[int]:
    """Concurrencies in order, each once. Raises InputError where one cannot be a batch."""
    if batches is None:
        powers = [1 << power for power in range(most.bit_length()) if 1 << power <= most]
        return sorted({*powers, most})
    above = [batch for batch in batches if batch > most]
    if above:
        rule = f"max_num_seqs is {most}"
        remedy = f"give {most} or less, or raise engine.max_num_seqs"
        raise InputError([placed(HERE, Finding("--batch", f"{above[0]} requests in a batch", rule, remedy))])
    return sorted(set(batches))


def _scope_object(
    store: LoadStore,
    loaded: LoadedScenario,
    scope: Scope,
    ladder: Sequence[int],
    plans: Mapping[str, ArmPlan],
    most_requests: int,
    longest: int,
) -> dict[str, Any]:
    """One slice or the mix at every concurrency; its schedule is simulated at each as well."""
    schedule = scope_schedule(store, scope, ladder, plans, longest, most_requests)
    off = break_even_concurrency(store, scope, ladder, plans, longest)
    name = f"{SCHEDULE} {scope.name}"
    own = arm_plans(loaded, {SCHEDULE: schedule_overrides(schedule["ranges"])}, ONE_REPLICA)
    followed = replace(own[SCHEDULE], name=name)
    _, first_last, first_drafts = schedule["ranges"][0]
    alike = first_drafts == schedule["num_speculative_tokens"]  # else the lookahead slots differ
    for batch in ladder:
        if alike and batch <= first_last:
            store.same(scope, batch, name, fixed_name(first_drafts))
    store.simulate([(scope, batch, [followed]) for batch in ladder], f"{scope.name}: its schedule")
    return {
        "name": scope.name,
        "kind": scope.kind,
        "break_even_concurrency": off,
        "schedule": schedule,
        "by_concurrency": [batch_object(store, scope, batch, plans, longest) for batch in ladder],
    }


def _own_traffic(
    loaded: LoadedScenario,
    ranges: Sequence[Sequence[int]],
    longest: int,
    limits: EngineSettings,
    replications: int,
    mapped: Mapped,
    progress: Progress,
) -> Traffic:
    """Every fixed length, the schedule and the goodput policy on the scenario's traffic, on all its replicas."""
    arms = {name: arm for name, arm in tuned_arms(longest).items() if name == "goodput" or name.startswith("k")}
    if len(ranges) > 1:
        arms[SCHEDULE] = schedule_overrides(ranges)
    pools = loaded.scenario.engine.pools
    replicas = limits.replicas if pools is None else sum(pool.replicas for pool in pools)
    engine = {"pools": None, "replicas": replicas}
    return run_traffic(loaded, arms, engine, replications, mapped, progress, "own traffic")
