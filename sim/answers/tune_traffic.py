"""Arms of `specsim tune` on the scenario's own traffic: all replications, compared, and which of them is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..analysis.choice import Best, RatioRow, best_of, ratio_row
from ..analysis.overload import judge_overload
from ..analysis.replications import field_sample
from ..analysis.statistics import Sample
from ..inputs.load import LoadedScenario
from ..inputs.scenario import AtOnce, Closed
from .arm_results import compared_arm, merged_arm
from .executors import Mapped
from .load_store import Progress
from .plan import RunPlan, plan_run
from .replicate import ArmReplication, Task, run_replication
from .tune_arms import OFF, Changes, with_arms

THROUGHPUT, LATENCY = "output_throughput", "mean_e2el_ms"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Every replication of every arm on one traffic, and the measure by which they are judged.

    Open traffic below capacity has the same throughput whatever the arm, so it is judged by the mean E2E latency;
    unless all arms are overloaded, when how long the same requests take is all there is.
    """

    plan: RunPlan
    by_arm: Mapping[str, list[ArmReplication]]
    objective: str
    judged: tuple[str, ...]

    def sample(self, arm: str) -> Sample:
        """The objective of an arm."""
        found = field_sample([one.metrics for one in self.by_arm[arm]], self.objective)
        assert found is not None  # every replication completes requests: the loads before have shown it
        return found

    def ratio(self, arm: str, reference: str) -> RatioRow:
        """An arm against another by the objective."""
        return ratio_row(self.sample(arm), self.sample(reference), higher_is_better=self.objective == THROUGHPUT)

    def best(self, arms: Sequence[str]) -> Best[str]:
        """The best of these that can be judged."""
        judged = {arm: self.sample(arm) for arm in arms if arm in self.judged}
        return best_of(judged or {OFF: self.sample(OFF)}, higher_is_better=self.objective == THROUGHPUT)

    def document(self) -> dict[str, Any]:
        """Arms and their comparison with `off`, both as in a result of `specsim run`; the objective's ratios."""
        overloads = {
            name: judge_overload([one.overload for one in arm if one.overload]) for name, arm in self.by_arm.items()
        }
        off = self.plan.arms[0]
        arms = {
            name: merged_arm(arm, off, self.by_arm[name], overloads[name])
            for name, arm in zip(self.by_arm, self.plan.arms, strict=True)
        }
        comparison = {
            name: compared_arm(
                arm, self.by_arm[name], self.by_arm[OFF], overloads[name].detected or overloads[OFF].detected
            )
            for name, arm in zip(self.by_arm, self.plan.arms, strict=True)
            if name != OFF
        }
        ratios = {name: self.ratio(name, OFF) for name in self.by_arm}
        return {"objective": self.objective, "ratio_to_off": ratios, "arms": arms, "comparison": comparison}


def run_traffic(
    loaded: LoadedScenario,
    arms: Mapping[str, Changes],
    engine: Changes,
    replications: int,
    mapped: Mapped,
    progress: Progress,
    label: str,
) -> Traffic:
    """Simulate the arms and `off` on the scenario's traffic. Raises InputError."""
    changed = with_arms(loaded, arms, engine)
    plan = plan_run(changed)
    task = Task(changed.scenario, changed.base_dir.resolve(), plan, 0)
    names = [OFF if arm.name == "baseline" else arm.name for arm in plan.arms]
    by_arm: dict[str, list[ArmReplication]] = {name: [] for name in names}
    for done, found in enumerate(mapped(partial(run_replication, task), range(replications)), 1):
        for one, name in zip(found, names, strict=True):
            by_arm[name].append(one)
        progress(done, replications, label)
    overloaded = {
        name for name, arm in by_arm.items() if judge_overload([one.overload for one in arm if one.overload]).detected
    }
    closed = isinstance(changed.scenario.workload.arrivals, Closed | AtOnce)
    objective = THROUGHPUT if closed or len(overloaded) == len(by_arm) else LATENCY
    judged = tuple(name for name in names if objective == THROUGHPUT or name not in overloaded)
    return Traffic(plan, by_arm, objective, judged)


def multiplied(loaded: LoadedScenario, factor: float) -> LoadedScenario:
    """The scenario with `factor` times the traffic, for as many times the replicas."""
    workload = loaded.scenario.workload
    arrivals = dict(loaded.data["workload"]["arrivals"])
    data = {**loaded.data, "workload": {**loaded.data["workload"], "arrivals": arrivals}}
    if isinstance(workload.arrivals, Closed):
        arrivals["concurrency"] = round(workload.arrivals.concurrency * factor)
    elif arrivals["kind"] == "trace" and arrivals.get("rate") is None:
        arrivals["scale"] = arrivals.get("scale", 1.0) * factor
    elif arrivals["kind"] != "at_once":
        arrivals["rate"] = arrivals["rate"] * factor
    if workload.requests is not None and arrivals["kind"] != "trace":
        data["workload"]["requests"] = round(workload.requests * factor)
    source = loaded.source
    changed = type(source)(source.file, source.base_dir, data, source.marks, source.keys)
    return LoadedScenario(type(loaded.scenario).model_validate(data), changed, loaded.calibrations)
