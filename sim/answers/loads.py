"""One arm at one load: simulated in every replication, judged against the SLO."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..analysis.latency import request_latencies
from ..analysis.overload import Overload, judge_overload
from ..analysis.slo import SloLimit, slo_values
from ..analysis.statistics import mean_interval, sample_of
from ..analysis.timeline import completed_requests, timeline
from ..inputs.load import LoadedScenario
from ..inputs.scenario import TraceArrivals
from .arm_results import merged_arm
from .executors import Workers
from .load_axis import LoadAxis
from .plan import ArmPlan, RunPlan
from .replicate import ArmReplication, Task, run_replication

LOOKS_PER_ARM = 30  # about
STEADY_LATENCIES = 10  # traffic that lasts less shows an engine that is still filling up
MOST_GROWTH = 20  # of the requests in one go
MOST_REQUESTS = 200_000
ROW_FIELDS = (
    *("request_throughput", "output_throughput"),
    *(f"{statistic}_{latency}_ms" for latency in ("ttft", "tpot", "e2el") for statistic in ("mean", "p95")),
    *("mean_queue_ms", "mean_decode_ms", "mean_running", "max_running", "kv_utilisation", "preemptions"),
    *("extrapolated_share", "committed_tokens_per_round", "completed", "failed", "cost"),
)


class Judged(NamedTuple):
    """A latency against its limit, in ms: mean over replications, with its interval (None with one replication)."""

    limit: SloLimit
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class AtLoad:
    """An arm at a load. result: the arm's object, as in the result of a run.

    requests: in each replication. latencies: mean latencies for which open traffic lasts; infinite for users.
    """

    load: float
    requests: int
    result: dict[str, Any]
    overload: Overload
    judged: tuple[Judged, ...]
    latencies: float

    @property
    def steady(self) -> bool:
        """Whether the traffic lasts long enough for most requests to see the engine in its steady state."""
        return self.latencies >= STEADY_LATENCIES

    @property
    def meets(self) -> bool:
        """Whether every limit holds; an overloaded run never meets one, nor does one that completes nothing."""
        return self._all("value")

    @property
    def surely(self) -> bool:
        """Whether it holds at the unfavourable end of every interval."""
        return self._all("high")

    @property
    def perhaps(self) -> bool:
        """Whether it holds at the favourable end."""
        return self._all("low")

    def _all(self, end: str) -> bool:
        if self.overload.detected or not self.result["completed"]:
            return False
        for one in self.judged:
            value = getattr(one, end)
            value = one.value if value is None else value
            if value is not None and value > one.limit.limit_ms:
                return False
        return True

    def document(self) -> dict[str, Any]:
        """The row of this load."""
        limits = {one.limit.metric: {"value": one.value, "low": one.low, "high": one.high} for one in self.judged}
        row = {"load": self.load, "requests": self.requests, "meets": self.meets, "steady": self.steady, "slo": limits}
        return row | {"overload": self.overload._asdict()} | {name: self.result[name] for name in ROW_FIELDS}


class Simulator:
    """Simulates arms at loads, each of them once. progress(done, total, label): total is a guess."""

    def __init__(
        self,
        loaded: LoadedScenario,
        plan: RunPlan,
        axis: LoadAxis,
        limits: tuple[SloLimit, ...],
        pool: Workers,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> None:
        self._loaded, self._plan, self._axis, self._limits, self._pool = loaded, plan, axis, limits, pool
        self._progress = progress
        self._known: dict[tuple[str, int, float], AtLoad] = {}

    def at(self, arm: ArmPlan, load: float) -> AtLoad:
        """An arm, with the replicas that it has, at a load. Its warm-up is its own: no other arm runs beside it."""
        key = (arm.name, arm.settings.replicas, load)
        if key not in self._known:
            self._known[key] = self._simulated(arm, load)
            if self._progress is not None:
                done, guess = len(self._known), LOOKS_PER_ARM * len(self._plan.arms)
                self._progress(done, max(done, guess), f"loads of arm {arm.name}")
        return self._known[key]

    def of(self, arm: ArmPlan) -> dict[float, AtLoad]:
        """Where this arm was looked at, in ascending order."""
        name, replicas = arm.name, arm.settings.replicas
        found = {load: at for (one, count, load), at in self._known.items() if (one, count) == (name, replicas)}
        return dict(sorted(found.items()))

    def _simulated(self, arm: ArmPlan, load: float) -> AtLoad:
        """With more requests than the scenario has, where those come in too little time to see a steady state."""
        requests = None
        while True:
            scenario = self._axis.scenario_at(self._loaded.scenario, load, requests)
            task = Task(scenario, self._loaded.base_dir.resolve(), replace(self._plan, arms=(arm,)), 0)
            numbers = range(scenario.run.replications)
            futures = [self._pool.executor.submit(run_load, task, number, self._limits) for number in numbers]
            found = [future.result() for future in futures]
            at = _judged(arm, self._plan.arms[0], load, found, self._limits, open_arrivals=not self._axis.whole)
            longer = math.ceil(1.2 * at.requests * STEADY_LATENCIES / max(at.latencies, 1e-9))
            requests = min(longer, MOST_GROWTH * at.requests, MOST_REQUESTS)
            fixed = scenario.workload.requests is None or isinstance(scenario.workload.arrivals, TraceArrivals)
            if at.steady or not at.meets or fixed or requests <= at.requests:
                return at


def run_load(task: Task, replication: int, limits: tuple[SloLimit, ...]) -> tuple[ArmReplication, list[float | None]]:
    """What a process does: one replication of the only arm, with the latency that each limit is about."""
    [arm] = run_replication(replace(task, kept_replications=replication + 1), replication)
    records = arm.records
    if records is None:
        raise ValueError("a replication without records cannot be judged")
    kept = completed_requests(records, arm.first_kept)
    values = slo_values(request_latencies(records, timeline(records), kept), limits)
    return replace(arm, requests=None, records=None), values


def _judged(
    arm: ArmPlan,
    baseline: ArmPlan,
    load: float,
    found: list[tuple[ArmReplication, list[float | None]]],
    limits: tuple[SloLimit, ...],
    open_arrivals: bool,
) -> AtLoad:
    replications = [one for one, _ in found]
    overload = judge_overload([one.overload for one in replications if one.overload])
    judged = []
    for place, limit in enumerate(limits):
        values = [value for _, row in found if (value := row[place]) is not None]
        sample = sample_of(values)
        interval = mean_interval(sample) if len(values) > 1 else None
        low, high = interval or (None, None)
        judged.append(Judged(limit, sample.estimate if values else None, low, high))
    result = merged_arm(arm, baseline, replications, overload)
    requests = round((result["completed"] + result["failed"]) / len(replications))
    latencies = math.inf
    if open_arrivals and result["request_throughput"] and result["mean_e2el_ms"]:
        latencies = 1e3 * requests / result["request_throughput"] / result["mean_e2el_ms"]
    return AtLoad(load, requests, result, overload, tuple(judged), latencies)
