"""A closed load of a fixed concurrency: some users, each always with one request in the engine, on one replica.

What `specsim tune` asks at every batch size, for the mix of all slices and for each slice alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..acceptance.build import build_runs, no_acceptance
from ..analysis.latency import request_latencies
from ..analysis.statistics import Sample
from ..analysis.timeline import timeline
from ..engine.loop import simulate_pools
from ..engine.records import Records, SamplerCounts, Status
from ..inputs.scenario import Closed, Scenario, TraceArrivals
from ..workload.build import build_requests
from ..workload.problem_at import ProblemAt, without_position
from ..workload.requests import Requests
from .plan import ArmPlan

FEWEST_MEASURED = 64  # requests, or one for each user


class Scope(NamedTuple):
    """Requests of one slice, or of the mix of all. slices: their places in the workload."""

    name: str
    kind: str
    slices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """One load to simulate: whose requests, how many users, with which arms, as which replication."""

    scope: Scope
    concurrency: int
    arms: tuple[ArmPlan, ...]
    replication: int


@dataclass(frozen=True, slots=True)
class LoadTask:
    """What a worker needs to simulate any load of a scenario. depth: draft positions that the acceptance tells."""

    scenario: Scenario
    base_dir: Path
    depth: int


@dataclass(frozen=True, slots=True)
class LoadMeasure:
    """One arm under one load, from requests that begin and mostly end while all users are busy: the same in every arm.

    tokens: their output; user_seconds: from sending to last token, summed over them. A user is always in one of these
    two states, so tokens / user_seconds times users is the output throughput. Mean latencies are those of the same
    requests. Steps with rounds, their requests and contexts: between the first of these requests and the last of all.
    counts, preemptions, failed: of the whole run.
    """

    tokens: float
    user_seconds: float
    decode_steps: int
    decode_rows: int
    context_tokens: int
    mean_ttft_ms: float | None
    mean_tpot_ms: float | None
    extrapolated_share: float
    preemptions: int
    failed: int
    counts: SamplerCounts
    measured_depth: int | None


def scopes_of(scenario: Scenario) -> list[Scope]:
    """The mix, then each slice where there are several."""
    names = [part.name for part in scenario.workload.slices]
    mix = Scope("mix", "mix", tuple(range(len(names))))
    alone = [Scope(name, "slice", (place,)) for place, name in enumerate(names)]
    return [mix, *alone] if len(names) > 1 else [mix]


def requests_of_load(concurrency: int) -> int:
    """The first of each user, those that are measured, and as many again as there are users to keep all busy."""
    return concurrency + max(FEWEST_MEASURED, concurrency) + concurrency


def run_load(task: LoadTask, load: Load, problem_at: ProblemAt = without_position) -> dict[str, LoadMeasure]:
    """Every arm on the same requests. A pure function of its arguments."""
    requests = closed_requests(task, load, problem_at)
    models = [part.acceptance for part in load.arms[0].slices]
    seed = task.scenario.run.seed
    drafting = any(arm.drafts for arm in load.arms)
    runs = no_acceptance(requests)
    if drafting:
        runs = build_runs(requests, models, task.depth, seed, load.replication, task.base_dir)
    measures = {}
    for arm in load.arms:
        records = simulate_pools(requests, runs if arm.drafts else no_acceptance(requests), arm.pools)
        measures[arm.name] = _measured(records, load.concurrency, runs.measured_depth)
    return measures


def closed_requests(task: LoadTask, load: Load, problem_at: ProblemAt = without_position) -> Requests:
    """The requests of a load: lengths of its slices; of a trace, its rows in order, each replication from another on.

    Raises InputError as the scenario's own requests would.
    """
    workload, seed = task.scenario.workload, task.scenario.run.seed
    count = requests_of_load(load.concurrency)
    shares = [part.share if place in load.scope.slices else 0.0 for place, part in enumerate(workload.slices)]
    slices = [part.model_copy(update={"share": share}) for part, share in zip(workload.slices, shares, strict=True)]
    own = workload.model_copy(update={"slices": slices})
    if isinstance(workload.arrivals, TraceArrivals):
        listed = build_requests(own, task.base_dir, seed, load.replication, problem_at)
        rows = (np.arange(count) + load.replication * count) % len(listed)
        listed = replace(listed, hash_offsets=None, hash_ids=None, hash_block_tokens=None).taken(rows)
    else:
        arrivals = Closed(kind="closed", concurrency=load.concurrency)
        own = own.model_copy(update={"requests": count, "duration_s": None, "arrivals": arrivals})
        listed = build_requests(own, task.base_dir, seed, load.replication, problem_at)
    return replace(
        listed, arrival_ms=np.zeros(count), concurrency=load.concurrency, think_time_ms=0.0, send_until_ms=None
    )


def _measured(records: Records, concurrency: int, measured_depth: int | None) -> LoadMeasure:
    columns, steps = records.requests, records.steps[0]
    chosen = np.arange(concurrency, len(columns) - concurrency)
    begin_ms, end_ms = float(columns.arrival_ms[chosen[0]]), float(columns.arrival_ms[-1])
    chosen = chosen[columns.status[chosen] == Status.COMPLETED]
    latencies = request_latencies(records, timeline(records), chosen)
    tpots = latencies.tpot[~np.isnan(latencies.tpot)]
    delivered_ms = records.delivery_ms(0)
    within = (delivered_ms > begin_ms) & (delivered_ms <= end_ms)
    decoding = within & (steps.decode_rows > 0)
    busy_ms = float(steps.duration_ms[within].sum())
    return LoadMeasure(
        tokens=float(columns.output_tokens[chosen].sum()),
        user_seconds=float(latencies.e2el.sum()) / 1e3,
        decode_steps=int(decoding.sum()),
        decode_rows=int(steps.decode_rows[decoding].sum()),
        context_tokens=int(steps.context_tokens[decoding].sum()),
        mean_ttft_ms=float(latencies.ttft.mean()) if len(chosen) else None,
        mean_tpot_ms=float(tpots.mean()) if len(tpots) else None,
        extrapolated_share=float(steps.extrapolated_ms[within].sum()) / busy_ms if busy_ms else 0.0,
        preemptions=int(columns.preemptions.sum()),
        failed=int((columns.status == Status.FAILED).sum()),
        counts=records.counts,
        measured_depth=measured_depth,
    )


def throughput_sample(measures: Sequence[LoadMeasure], concurrency: int) -> Sample:
    """Output tokens per second of all users together, over replications."""
    tokens = np.array([one.tokens for one in measures])
    return Sample(concurrency * tokens, np.array([one.user_seconds for one in measures]))
