"""`specsim run`: all arms of a scenario in all replications, merged into one answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .. import __version__
from ..analysis.comparison import compare_arms
from ..analysis.overload import Overload, judge_overload
from ..analysis.replications import merge_replications
from ..engine.records import Records
from ..inputs.errors import OutsideCalibrationError
from ..inputs.load import RESULT_SCHEMA, LoadedScenario, load_scenario
from ..inputs.resolved import resolved_scenario
from ..inputs.scenario import Engine
from ..workload.requests import Requests
from .marginal import marginal_table
from .plan import RunPlan, plan_run
from .replicate import ArmReplication, Task, run_replication
from .run_warnings import run_warnings

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ArmTables:
    """The records of one arm in one replication, with the requests that it served."""

    name: str
    replication: int
    requests: Requests
    records: Records


@dataclass(frozen=True, slots=True)
class RunResult:
    """document: the result as one JSON object. tables: only if they were asked for."""

    document: dict[str, Any]
    tables: list[ArmTables]


def run_scenario(
    path: Path | None,
    sets: Sequence[str] = (),
    jobs: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
    *,
    keep_tables: int = 0,
) -> RunResult:
    """Run a scenario file (None: the quickstart) with `--set` overrides.

    jobs: worker processes over replications; the result is the same for any number. progress(done, total, label).
    keep_tables: replications, from the first one on, whose tables come with the result.
    Raises InputError for mistakes in the input, OutsideCalibrationError if `strict` and any step was extrapolated.
    """
    loaded = load_scenario(path, sets)
    plan = plan_run(loaded)
    task = Task(loaded.scenario, loaded.base_dir.resolve(), plan, keep_tables)
    replications = []
    total = loaded.scenario.run.replications
    for done, arms in enumerate(_replications(task, loaded, jobs), start=1):
        replications.append(arms)
        if progress is not None:
            progress(done, total, "replications")
    by_arm = {arm.name: [one[index] for one in replications] for index, arm in enumerate(plan.arms)}
    document = _document(loaded, plan, by_arm)
    if strict:
        _refuse_extrapolation(document)
    tables = [
        ArmTables(name, replication, one.requests, one.records)
        for name, arm in by_arm.items()
        for replication, one in enumerate(arm)
        if one.requests is not None and one.records is not None
    ]
    return RunResult(document, tables)


def _replications(task: Task, loaded: LoadedScenario, jobs: int) -> Iterator[list[ArmReplication]]:
    total = task.scenario.run.replications
    if jobs == 1 or total == 1:
        for replication in range(total):
            yield run_replication(task, replication, loaded.problem)
        return
    # The first runs here, so that mistakes in a trace are told with their place in the scenario.
    yield run_replication(task, 0, loaded.problem)
    # A pool that is left by an exception ends its workers at once, and they end when this process is gone.
    with get_context("spawn").Pool(min(jobs, total - 1), initializer=leave_interrupts_to_the_parent) as pool:
        yield from pool.imap(partial(run_replication, task), range(1, total))


def leave_interrupts_to_the_parent() -> None:
    """For worker processes: a terminal sends Ctrl-C to all of them, one answer is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _document(loaded: LoadedScenario, plan: RunPlan, by_arm: dict[str, list[ArmReplication]]) -> dict[str, Any]:
    overloads = {name: judge_overload([one.overload for one in arm if one.overload]) for name, arm in by_arm.items()}
    metrics = {name: [one.metrics for one in arm] for name, arm in by_arm.items()}
    arms = {
        arm.name: merge_replications(
            metrics[arm.name],
            marginal=marginal_table(arm, plan.arms[0], by_arm[arm.name]),
            overload=overloads[arm.name],
        )
        for arm in plan.arms
    }
    baseline = plan.arms[0].name
    comparison = {
        name: compare_arms(metrics[name], metrics[baseline], overloaded=_either(overloads[name], overloads[baseline]))
        for name in list(metrics)[1:]
    }
    calibration = loaded.calibrations["calibration"]
    return {
        "schema": RESULT_SCHEMA,
        "specsim_version": __version__,
        "seed": loaded.scenario.run.seed,
        "scenario": _scenario_with_assumptions(loaded, plan),
        "calibration": {
            "name": calibration.name,
            "kind": calibration.kind,
            "heldout": calibration.heldout.model_dump() if calibration.heldout else None,
        },
        "warnings": run_warnings(plan, by_arm, arms),
        "arms": arms,
        "comparison": comparison,
    }


def _scenario_with_assumptions(loaded: LoadedScenario, plan: RunPlan) -> dict[str, Any]:
    """The scenario as it was run, the engine limits that it left out written down."""
    scenario = resolved_scenario(loaded)
    engine = scenario.get("engine", {}) | plan.assumed
    scenario["engine"] = {key: engine[key] for key in Engine.model_fields if key in engine}
    for name, assumed in plan.of_arm.items():
        scenario["arms"][name] |= {f"engine.{key}": value for key, value in assumed.items()}
    return scenario


def _either(one: Overload, other: Overload) -> bool:
    return one.detected or other.detected


def _refuse_extrapolation(document: dict[str, Any]) -> None:
    shares = {name: arm["extrapolated_share"] for name, arm in document["arms"].items() if arm["extrapolated_share"]}
    if shares:
        named = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
        raise OutsideCalibrationError(
            f"beyond the range of calibration {document['calibration']['name']} in a share of the time ({named}), "
            "--strict refuses that, lower the load or take a calibration that reaches it"
        )
