"""`specsim run`: all arms of a scenario in all replications, merged into one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .. import __version__
from ..analysis.overload import Overload, judge_overload
from ..engine.records import Records
from ..inputs.errors import OutsideCalibrationError
from ..inputs.load import RESULT_SCHEMA, LoadedScenario, load_scenario
from ..inputs.resolved import resolved_scenario
from ..inputs.run_checks import most_replications, wanted_precision
from ..inputs.scenario import Engine
from ..workload.requests import Requests
from .arm_results import compared_arm, merged_arm
from .executors import workers
from .plan import RunPlan, plan_run
from .precision import Shortfall, replications_wanted, shortfalls
from .replicate import ArmReplication, Task, run_replication
from .run_warnings import run_warnings

Progress = Callable[[int, int, str], None]
RunRange = Callable[[range], Iterator[list[ArmReplication]]]


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
    by_arm, missing = _replicate(task, loaded, jobs, progress)
    document = result_document(loaded, plan, by_arm, missing)
    if strict:
        _refuse_extrapolation(document)
    tables = [
        ArmTables(name, replication, one.requests, one.records)
        for name, arm in by_arm.items()
        for replication, one in enumerate(arm)
        if one.requests is not None and one.records is not None
    ]
    return RunResult(document, tables)


def _replicate(
    task: Task, loaded: LoadedScenario, jobs: int, progress: Progress | None
) -> tuple[dict[str, list[ArmReplication]], list[Shortfall]]:
    """Replications of every arm, more of them while they are not precise enough; and what still is not."""
    settings = task.scenario.run
    wanted, most = wanted_precision(settings), most_replications(settings)
    by_arm: dict[str, list[ArmReplication]] = {arm.name: [] for arm in task.plan.arms}
    done, total = 0, settings.replications
    missing: list[Shortfall] = []
    with _replications(task, loaded, jobs, most) as run:
        while done < total:
            for arms in run(range(done, total)):
                for arm, one in zip(by_arm.values(), arms, strict=True):
                    arm.append(one)
                done += 1
                if progress is not None:
                    progress(done, total, "replications")
            missing = shortfalls(by_arm, wanted)
            total = replications_wanted(missing, done, most)
    return by_arm, missing


@contextmanager
def _replications(task: Task, loaded: LoadedScenario, jobs: int, most: int) -> Iterator[RunRange]:
    """What runs replications and gives them in order: this process, or a pool of others."""

    def here(numbers: range) -> Iterator[list[ArmReplication]]:
        return (run_replication(task, number, loaded.problem) for number in numbers)

    if jobs == 1 or most == 1:
        yield here
        return
    with workers(min(jobs, most - 1, 2 * task.scenario.run.replications)) as pool:

        def there(numbers: range) -> Iterator[list[ArmReplication]]:
            first = 0
            if numbers.start == 0:
                # The first runs here, so that mistakes in a trace are told with their place in the scenario.
                first = 1
                yield from here(numbers[:1])
            yield from pool.executor.map(partial(run_replication, task), numbers[first:])

        yield there


def result_document(
    loaded: LoadedScenario, plan: RunPlan, by_arm: dict[str, list[ArmReplication]], missing: list[Shortfall]
) -> dict[str, Any]:
    """The result of all arms' replications as one JSON object. missing: what is less precise than asked for."""
    overloads = {name: judge_overload([one.overload for one in arm if one.overload]) for name, arm in by_arm.items()}
    arms = {arm.name: merged_arm(arm, plan.arms[0], by_arm[arm.name], overloads[arm.name]) for arm in plan.arms}
    baseline = plan.arms[0].name
    comparison = {
        arm.name: compared_arm(
            arm, by_arm[arm.name], by_arm[baseline], _either(overloads[arm.name], overloads[baseline])
        )
        for arm in plan.arms[1:]
    }
    calibration = loaded.calibrations["calibration"]
    return {
        "schema": RESULT_SCHEMA,
        "specsim_version": __version__,
        "seed": loaded.scenario.run.seed,
        "replications": len(by_arm[baseline]),
        "scenario": _scenario_with_assumptions(loaded, plan),
        "calibration": {
            "name": calibration.name,
            "kind": calibration.kind,
            "heldout": calibration.heldout.model_dump(exclude={"folds"}) if calibration.heldout else None,
        },
        "warnings": run_warnings(plan, by_arm, arms, missing),
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
