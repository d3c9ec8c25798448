"""`specsim capacity`: the highest load within the SLO for each arm, what breaks it there, replicas and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..analysis.slo import SloLimit, slo_limits
from ..inputs.errors import InputError
from ..inputs.load import LoadedScenario, load_scenario
from ..inputs.resolved import resolved_scenario
from .arm_capacity import ArmCapacity, arm_capacity, fewest_replicas
from .breaking_point import breaking_point
from .executors import workers
from .load_axis import LoadAxis, load_axis
from .loads import STEADY_LATENCIES, Simulator
from .plan import RunPlan, plan_run

CAPACITY_SCHEMA = "specsim-capacity/1"
TABLE = (0.25, 0.5, 0.75, 0.9, 1.0)  # loads of the table, as shares of the highest load of any arm
MOST_EXTRAPOLATED = 0.05
Progress = Callable[[int, int, str], None]


def capacity(
    path: Path | None,
    sets: Sequence[str] = (),
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Capacity of every arm as one JSON object, the same for any number of processes. Raises InputError."""
    loaded = load_scenario(path, sets)
    limits = _limits(loaded)
    plan = plan_run(loaded)
    slots = [sum(pool.settings.max_num_seqs * pool.settings.replicas for pool in arm.pools) for arm in plan.arms]
    axis = load_axis(loaded, max(slots))
    with workers(jobs, dask) as pool:
        simulator = Simulator(loaded, plan, axis, limits, pool, progress)
        found = [arm_capacity(arm, axis, simulator) for arm in plan.arms]
        table = _table_loads(found, axis)
        for one in found:
            for load in table:
                simulator.at(one.arm, load)
        arms = {one.arm.name: _arm_document(one, axis, simulator) for one in found}
    return _document(loaded, plan, axis, limits, arms, table)


def _limits(loaded: LoadedScenario) -> tuple[SloLimit, ...]:
    slo = loaded.scenario.slo
    limits = () if slo is None else slo_limits(slo)
    if not limits:
        what = "there is none" if slo is None else "it limits no latency"
        rule = "capacity is the highest load that keeps within its limits"
        remedy = "add for example `slo: {ttft_ms: 500, tpot_ms: 50, percentile: 95}`"
        raise InputError([loaded.problem("slo", what, rule, remedy)])
    return limits


def _table_loads(found: Sequence[ArmCapacity], axis: LoadAxis) -> list[float]:
    """The same loads for all arms, so that cost and latency can be compared; none where no arm carries anything."""
    highest = max((one.found.meets for one in found if one.found.meets is not None), default=None)
    if highest is None:
        return []
    loads = [share * highest for share in TABLE]
    return sorted({float(max(1, round(load))) for load in loads} if axis.whole else set(loads))


def _arm_document(one: ArmCapacity, axis: LoadAxis, simulator: Simulator) -> dict[str, Any]:
    arm, found = one.arm, one.found
    looks = simulator.of(arm)
    at = None if found.meets is None else looks[found.meets]
    breaks = None
    if found.fails is not None:
        breaks = breaking_point(arm, looks[found.fails], next(iter(looks.values())))
    return {
        "answer": one.answer,
        "highest_load": found.meets,
        "interval": one.interval,
        "lowest_load_that_fails": found.fails,
        "breaks": breaks,
        "request_throughput": None if at is None else at.result["request_throughput"],
        "output_throughput": None if at is None else at.result["output_throughput"],
        "cost": None if at is None else at.result["cost"],
        "steady": None if at is None else at.steady,
        "replicas": fewest_replicas(one, axis, simulator),
        "loads": [look.document() for look in looks.values()],
    }


def _document(
    loaded: LoadedScenario,
    plan: RunPlan,
    axis: LoadAxis,
    limits: Sequence[SloLimit],
    arms: dict[str, Any],
    table: list[float],
) -> dict[str, Any]:
    calibration = loaded.calibrations["calibration"]
    slo = loaded.scenario.slo
    return {
        "schema": CAPACITY_SCHEMA,
        "specsim_version": __version__,
        "seed": loaded.scenario.run.seed,
        "replications": loaded.scenario.run.replications,
        "scenario": resolved_scenario(loaded),
        "calibration": {
            "name": calibration.name,
            "kind": calibration.kind,
            "heldout": calibration.heldout.model_dump() if calibration.heldout else None,
        },
        "warnings": [*plan.warnings, *_warnings(loaded, arms)],
        "load": {"path": axis.path, "unit": axis.unit, "offered": axis.offered, "most": axis.most},
        "slo": {
            "percentile": slo.percentile if slo else None,
            "limits": [{"metric": one.metric, "limit_ms": one.limit_ms} for one in limits],
        },
        "table_loads": table,
        "arms": arms,
    }


def _warnings(loaded: LoadedScenario, arms: dict[str, Any]) -> Iterator[str]:
    run = loaded.scenario.run
    if run.precision is not None:
        yield f"run.precision is not used here: every load has {run.replications} replications"
    for name, arm in arms.items():
        if arm["steady"] is False:
            yield (
                f"arm {name}: at its capacity all requests arrive within {STEADY_LATENCIES} latencies, which shows no "
                "steady state: take a longer trace or duration_s"
            )
        at = [look for look in arm["loads"] if look["load"] == arm["highest_load"]]
        for look in at:
            if (look["extrapolated_share"] or 0.0) > MOST_EXTRAPOLATED:
                share = look["extrapolated_share"]
                yield f"arm {name}: {share:.0%} of the time at its capacity lies beyond the calibrated range"
            if look["failed"]:
                yield f"arm {name}: {look['failed']} requests can never fit into the engine and were refused"
