"""One replication: draw the requests, simulate every arm on them, measure. What a worker process does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..acceptance.build import build_runs, no_acceptance
from ..acceptance.runs import AcceptanceRuns
from ..analysis.batch_means import BatchSeries
from ..analysis.draft_lengths import DraftLengths, draft_lengths
from ..analysis.latency import request_latencies
from ..analysis.metrics import ReplicationMetrics, replication_metrics
from ..analysis.missed_graphs import MissedGraphs, missed_graphs
from ..analysis.overload import OverloadEvidence, overload_evidence
from ..analysis.slices import SlicePool, slice_metrics
from ..analysis.statistics import mser5_limit, mser5_truncation
from ..analysis.timeline import completed_requests, timeline
from ..engine.loop import simulate_pools
from ..engine.records import Records, SamplerCounts
from ..inputs.scenario import Gamma, Poisson, Scenario, Slice, TraceArrivals
from ..workload.build import build_requests
from ..workload.problem_at import ProblemAt, without_position
from ..workload.requests import Requests
from .closed_duration import first_length, longer_list
from .plan import ArmPlan, RunPlan


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker needs to run any replication of a scenario: plain data.

    kept_replications: those before this one bring their records along.
    """

    scenario: Scenario
    base_dir: Path
    plan: RunPlan
    kept_replications: int


@dataclass(frozen=True, slots=True)
class ArmReplication:
    """What one arm gave in one replication.

    slices: one entry per slice of the workload, none where there is only one. series: only where intervals come from
    batches. first_kept: requests cut as warm-up. steady: False where the warm-up rule cut all that it may.
    decode_steps, decode_rows, context_tokens: steps with rounds, and sums over them, for the mean decode batch.
    measured_depth: see `AcceptanceRuns`. missed_graphs: None where the calibration knows no graphs. overload: None for
    traffic that cannot be overloaded. draft_lengths: None where the draft length is fixed. requests and records: only
    where somebody wants to write them down.
    """

    metrics: ReplicationMetrics
    slices: list[ReplicationMetrics]
    series: BatchSeries | None
    first_kept: int
    steady: bool
    overload: OverloadEvidence | None
    decode_steps: int
    decode_rows: int
    context_tokens: int
    counts: SamplerCounts
    measured_depth: int | None
    missed_graphs: MissedGraphs | None
    draft_lengths: DraftLengths | None
    requests: Requests | None = None
    records: Records | None = None


def run_replication(
    task: Task, replication: int, problem_at: ProblemAt = without_position, baseline: ArmReplication | None = None
) -> list[ArmReplication]:
    """All arms on the same requests. The warm-up is the baseline's, so that every arm is judged on the same ones.

    baseline: what the first arm gave, where it is known already.
    """
    shared = tuple(task.scenario.workload.slices)
    common = _requests(task, shared, replication, problem_at, first_length(task.scenario.workload))
    first_kept, steady = 0, True
    results = []
    if baseline is not None:
        first_kept, steady = baseline.first_kept, baseline.steady
        results.append(baseline)
    for index, arm in enumerate(task.plan.arms[len(results) :], start=len(results)):
        slices = shared if _same_lengths(arm.slices, shared) else arm.slices
        listed = common if slices is shared else _requests(task, slices, replication, problem_at, len(common))
        while True:
            runs = _acceptance(task, arm, listed, replication)
            records = simulate_pools(listed, runs, arm.pools)
            longer = longer_list(listed, records, problem_at)
            if longer is None:
                break
            listed = _requests(task, slices, replication, problem_at, longer)
        requests = listed if len(records.requests) == len(listed) else listed.first(len(records.requests))
        if index == 0:
            first_kept, steady = _warm_up(task.scenario, records)
        measured = _measured(task, arm, requests, runs, records, first_kept, steady)
        if replication < task.kept_replications:
            measured = replace(measured, requests=requests, records=records)
        results.append(measured)
    return results


def _requests(
    task: Task, slices: tuple[Slice, ...], replication: int, problem_at: ProblemAt, count: int | None
) -> Requests:
    """count: how many, where the scenario does not say it (`closed_duration`)."""
    workload = task.scenario.workload.model_copy(update={"slices": list(slices)})
    if first_length(workload) is not None:
        workload = workload.model_copy(update={"requests": count})
    return build_requests(workload, task.base_dir, task.scenario.run.seed, replication, problem_at)


def _same_lengths(slices: tuple[Slice, ...], others: tuple[Slice, ...]) -> bool:
    return [(part.prompt_tokens, part.output_tokens) for part in slices] == [
        (part.prompt_tokens, part.output_tokens) for part in others
    ]


def _acceptance(task: Task, arm: ArmPlan, requests: Requests, replication: int) -> AcceptanceRuns:
    if not arm.drafts:
        return no_acceptance(requests)
    models = [part.acceptance for part in arm.slices]
    return build_runs(requests, models, arm.drafts + 1, task.scenario.run.seed, replication, task.base_dir)


def _warm_up(scenario: Scenario, records: Records) -> tuple[int, bool]:
    """Requests to cut, in order of arrival, and whether a steady state was seen.

    Only traffic that could go on for ever has a steady state to wait for.
    """
    if scenario.run.warmup == "none" or not isinstance(scenario.workload.arrivals, Poisson | Gamma):
        return 0, True
    completed = completed_requests(records)  # open arrivals: already in order of arrival
    cut = mser5_truncation(request_latencies(records, timeline(records), completed).e2el)
    return int(completed[cut]) if cut < len(completed) else 0, not cut or cut < mser5_limit(len(completed))


def _measured(
    task: Task,
    arm: ArmPlan,
    requests: Requests,
    runs: AcceptanceRuns,
    records: Records,
    first_kept: int,
    steady: bool,
) -> ArmReplication:
    slo, success_rates = task.scenario.slo, [part.success_rate for part in arm.slices]
    metrics = replication_metrics(
        records,
        requests,
        num_gpu_blocks=arm.settings.num_gpu_blocks,
        success_rates=success_rates,
        slo=slo,
        price=task.scenario.price,
        first_kept=first_kept,
    )
    slices = []
    if len(arm.slices) > 1:
        slices = slice_metrics(
            records,
            requests,
            metrics,
            success_rates=success_rates,
            slo=slo,
            first_kept=first_kept,
            pools=[SlicePool(pool.settings.replicas, pool.slices or range(len(arm.slices))) for pool in arm.pools],
        )
    open_traffic = isinstance(task.scenario.workload.arrivals, Poisson | Gamma | TraceArrivals)
    decode_steps = sum(int((steps.decode_rows > 0).sum()) for steps in records.steps)
    return ArmReplication(
        metrics=metrics,
        slices=slices,
        series=_series(records, requests, first_kept) if task.scenario.run.intervals == "batch_means" else None,
        first_kept=first_kept,
        steady=steady,
        overload=overload_evidence(records, [pool.settings.replicas for pool in arm.pools]) if open_traffic else None,
        decode_steps=decode_steps,
        decode_rows=sum(int(steps.decode_rows.sum()) for steps in records.steps),
        context_tokens=sum(int(steps.context_tokens.sum()) for steps in records.steps),
        counts=records.counts,
        measured_depth=runs.measured_depth,
        missed_graphs=missed_graphs(records, arm.drafts + 1) if arm.has_one_length and arm.capture_unit else None,
        draft_lengths=draft_lengths(records, arm.drafts) if arm.settings.varies else None,
    )


def _series(records: Records, requests: Requests, first_kept: int) -> BatchSeries:
    kept = completed_requests(records, first_kept)  # open arrivals: in order of arrival
    return BatchSeries(request_latencies(records, timeline(records), kept), requests.slice_index[kept])
