"""The capacity of one arm: its highest load within the SLO, the interval around it, and replicas for a given load."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .load_axis import LoadAxis
from .load_search import Boundary, between, highest_load, known_bracket
from .loads import AtLoad, Simulator
from .plan import ArmPlan

PRECISION = 0.005  # of the highest load
BOUND_PRECISION = 0.02  # of the ends of its interval
IDLE = 0.02  # requests running on average: less load changes nothing
LEAST_LOAD = 1e-6
MOST_REPLICAS = 1024


@dataclass(frozen=True, slots=True)
class ArmCapacity:
    """found: the highest load that meets the SLO and the lowest that does not. interval: loads that may be either."""

    arm: ArmPlan
    found: Boundary
    interval: list[float] | None

    @property
    def answer(self) -> str:
        """`found`, `nothing_meets` or `everything_meets`."""
        if self.found.meets is None:
            return "nothing_meets"
        return "found" if self.found.fails is not None else "everything_meets"


def arm_capacity(arm: ArmPlan, axis: LoadAxis, simulator: Simulator) -> ArmCapacity:
    """Search from the scenario's own load on, in both directions."""
    found = highest_load(
        lambda load: simulator.at(arm, load).meets,
        axis.offered,
        least=1.0 if axis.whole else _least(arm, axis, simulator),
        most=axis.most,
        whole=axis.whole,
        precision=PRECISION,
    )
    return ArmCapacity(arm, found, _interval(arm, found, axis, simulator))


def fewest_replicas(one: ArmCapacity, axis: LoadAxis, simulator: Simulator) -> dict[str, Any]:
    """Replicas that keep the scenario's own load within the SLO, and what that costs; `why` where there are none."""
    none = {"load": axis.offered, "replicas": None, "cost": None}
    if len(one.arm.pools) > 1:
        return {**none, "why": "pools have replicas of their own"}
    if one.found.meets is None:
        return {**none, "why": "no load meets the SLO"}
    guess = math.ceil(axis.offered * one.arm.settings.replicas / one.found.meets)
    found = highest_load(
        lambda count: not simulator.at(_with_replicas(one.arm, int(count)), axis.offered).meets,
        float(guess),
        least=1.0,
        most=float(MOST_REPLICAS),
        whole=True,
        precision=PRECISION,
    )
    if found.fails is None:
        return {**none, "why": f"{MOST_REPLICAS} do not"}
    count = int(found.fails)
    at = simulator.at(_with_replicas(one.arm, count), axis.offered)
    return {"load": axis.offered, "replicas": count, "cost": at.result["cost"], "why": None}


def _with_replicas(arm: ArmPlan, count: int) -> ArmPlan:
    [pool] = arm.pools
    return replace(arm, pools=(replace(pool, settings=replace(pool.settings, replicas=count)),))


def _least(arm: ArmPlan, axis: LoadAxis, simulator: Simulator) -> float:
    """A load at which the engine is as good as idle."""
    running = simulator.at(arm, axis.offered).result["mean_running"] or 0.0
    return max(axis.offered * min(1.0, IDLE / max(running, IDLE)), LEAST_LOAD)


def _interval(arm: ArmPlan, found: Boundary, axis: LoadAxis, simulator: Simulator) -> list[float] | None:
    """Where limits cross the ends of the latencies' intervals over replications; None with one replication."""
    if found.meets is None or found.fails is None:
        return None
    if any(one.low is None for one in simulator.at(arm, found.meets).judged):
        return None

    def bound(condition: Callable[[AtLoad], bool]) -> Boundary:
        known = known_bracket(lambda load: condition(simulator.at(arm, load)), simulator.of(arm))
        if known.meets is None or known.fails is None:
            return known
        return between(
            lambda load: condition(simulator.at(arm, load)),
            known.meets,
            known.fails,
            whole=axis.whole,
            precision=BOUND_PRECISION,
        )

    low, high = bound(lambda at: at.surely), bound(lambda at: at.perhaps)
    if low.meets is None or high.fails is None:
        return None
    return [min(low.meets, found.meets), max(high.fails, found.meets)]
