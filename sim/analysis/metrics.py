"""One replication of one arm: the fields of its result, from the records alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cost.step_costs import GraphMode
from ..engine.records import Floats, Ints, Records, Status
from ..inputs.scenario import Price, Slo
from ..workload.requests import Requests
from .attribution import mean_ttft_parts, time_share
from .cost import gpu_cost_usd, successful_tasks
from .fields import FIELDS, GRAPH_MODES, Merge, Ratio, Rule, Table
from .latency import Latencies, inter_token_latencies, request_latencies
from .slo import meets_deadline, meets_slo
from .statistics import percentiles, weighted_percentiles
from .timeline import Timeline, completed_requests, timeline

P99_MIN_REQUESTS = 1000
IDLE_MS = 1e-6  # a gap between two steps that is more than rounding

Scalar = float | int | None
Value = Scalar | list[float] | dict[str, Scalar]
Totals = dict[str, float | Floats]


@dataclass(frozen=True, slots=True)
class ReplicationMetrics:
    """Fields in the order of `FIELDS`, without those given for a whole arm; the sums behind its ratios; caveats."""

    values: dict[str, Value]
    totals: Totals
    caveats: list[str]


def replication_metrics(
    records: Records,
    requests: Requests,
    *,
    num_gpu_blocks: int | None,
    success_rates: Sequence[float | None],
    slo: Slo | None = None,
    price: Price | None = None,
    first_kept: int = 0,
) -> ReplicationMetrics:
    """All fields of one replication. success_rates: one per slice. Undefined values are None.

    first_kept: requests cut as warm-up, counted in order of arrival. Latencies, their shares and throughputs are then
    those of the later requests, and throughputs count from the arrival of the first of these to the last delivery of
    the run. Counts, duration and cost are always those of the whole run.
    """
    line = timeline(records)
    completed = completed_requests(records)
    kept = completed_requests(records, first_kept)
    whole = request_latencies(records, line, completed)
    latencies = request_latencies(records, line, kept)
    finish_ms = line.delivery_ms[line.at(completed, records.requests.finish_step[completed])]
    duration_s = float(finish_ms.max()) / 1e3 if len(completed) else 0.0

    totals = _work_totals(records, completed) | _sampler_totals(records)
    totals |= _throughput_totals(records, requests, kept, _window_s(records, first_kept, duration_s))
    if slo is not None:
        totals["kept_good_requests"] = float(meets_slo(latencies, slo).sum())
    tasks = successful_tasks(requests.slice_index[completed], meets_deadline(whole, slo), success_rates)
    if price is not None:
        totals["usd"] = gpu_cost_usd(duration_s, len(records.steps), price)
        if tasks is not None:
            totals["successful_tasks"] = tasks

    values: dict[str, Value] = {
        **_counts(records, requests, completed),
        "duration": duration_s,
        **latency_fields(latencies, *inter_token_latencies(records, line, kept)),
        **{f"mean_ttft_{part}_ms": value for part, value in mean_ttft_parts(records, line, kept).items()},
        "time_share": time_share(records, line, kept),
        "graph_mode_share": _graph_mode_share(line),
        **_occupancy(records, line, duration_s * 1e3),
        "num_gpu_blocks": num_gpu_blocks,
    }
    ordered = field_values(FIELDS, values, totals)
    few = len(kept) < P99_MIN_REQUESTS
    caveats = [f"p99 values rest on {len(kept)} completed requests, fewer than {P99_MIN_REQUESTS}"] if few else []
    return ReplicationMetrics(ordered, totals, caveats)


def ratio_value(rule: Ratio, totals: Totals) -> float | list[float] | None:
    """A ratio of totals; None where a total is missing or the denominator is 0."""
    numerator, denominator = totals.get(rule.numerator), totals.get(rule.denominator)
    if numerator is None or denominator is None or not np.all(denominator):
        return None
    with np.errstate(over="ignore"):
        value: float | Floats = rule.scale * numerator / np.float64(denominator)
    if isinstance(value, np.ndarray):
        return [float(one) for one in value]
    return float(value) if np.isfinite(value) else None


def field_values(table: Table, values: dict[str, Value], totals: Totals) -> dict[str, Value]:
    """The fields of a table in its order, without those given for a whole arm: from `values`, or ratios of totals."""
    return {name: _field(name, rule, values, totals) for name, rule in table.items() if rule is not Merge.GIVEN}


def _field(name: str, rule: Rule | dict[str, Rule], values: dict[str, Value], totals: Totals) -> Value:
    if isinstance(rule, Ratio):
        return ratio_value(rule, totals)
    if name in values or not isinstance(rule, dict):
        return values[name]
    ratios = {key: ratio_value(part, totals) for key, part in rule.items() if isinstance(part, Ratio)}
    scalars = {key: value for key, value in ratios.items() if not isinstance(value, list)}
    return scalars if any(value is not None for value in scalars.values()) else None


def _window_s(records: Records, first_kept: int, duration_s: float) -> float:
    arrival_ms = np.sort(records.requests.arrival_ms)
    if first_kept >= len(arrival_ms):
        return 0.0
    return max(0.0, duration_s - float(arrival_ms[first_kept]) / 1e3) if first_kept else duration_s


def _work_totals(records: Records, completed: Ints) -> Totals:
    columns, counts = records.requests, records.counts
    queries, hits = records.prefix_cache or (0, 0)
    return {
        "prefix_cache_queries": float(queries),
        "prefix_cache_hits": float(hits),
        "completed": float(len(completed)),
        "output_tokens": float(columns.output_tokens[completed].sum()),
        "steps": float(sum(map(len, records.steps))),
        "rounds": float(counts.rounds),
        "committed_by_rounds": float(counts.committed_by_rounds),
        "target_passes": float((columns.prefill_passes[completed] + columns.rounds[completed]).sum()),
    }


def _sampler_totals(records: Records) -> Totals:
    """What vLLM's spec-decode metrics are made of; empty without speculation, when no draft position is counted."""
    counts = records.counts
    if not len(counts.accepted_at):
        return {}
    return {
        "num_drafts": float(counts.num_drafts),
        "draft_tokens": float(counts.draft_tokens),
        "accepted_tokens": float(counts.accepted_tokens),
        "accepted_and_bonus_tokens": float(counts.accepted_tokens + counts.num_drafts),
        "accepted_at": counts.accepted_at.astype(np.float64),
    }


def _throughput_totals(records: Records, requests: Requests, kept: Ints, window_s: float) -> Totals:
    output_tokens = float(records.requests.output_tokens[kept].sum())
    return {
        "window_s": window_s,
        "kept_requests": float(len(kept)),
        "kept_output_tokens": output_tokens,
        "kept_tokens": output_tokens + float(requests.prompt_tokens[kept].sum()),
    }


def _counts(records: Records, requests: Requests, completed: Ints) -> dict[str, Value]:
    columns, counts = records.requests, records.counts
    speculative = len(counts.accepted_at) > 0
    return {
        "completed": len(completed),
        "failed": int((columns.status == Status.FAILED).sum()),
        "total_input_tokens": int(requests.prompt_tokens[completed].sum()),
        "total_output_tokens": int(columns.output_tokens[completed].sum()),
        "spec_decode_num_drafts": counts.num_drafts if speculative else None,
        "spec_decode_draft_tokens": counts.draft_tokens if speculative else None,
        "spec_decode_accepted_tokens": counts.accepted_tokens if speculative else None,
        "wasted_draft_tokens": counts.draft_tokens - counts.accepted_tokens,
        "draft_tokens_cut": counts.draft_tokens_cut,
        "preemptions": int(columns.preemptions.sum()),
        "steps": sum(map(len, records.steps)),
    }


def latency_fields(latencies: Latencies, itl: Floats, itl_weights: Ints) -> dict[str, Value]:
    """Mean, median, p95 and p99 of every latency; None where there is none."""
    percents = (50, 95, 99)
    tpot = latencies.tpot[~np.isnan(latencies.tpot)]
    values = {"ttft": latencies.ttft, "tpot": tpot}
    values |= {"e2el": latencies.e2el, "decode": latencies.decode, "queue": latencies.queue}
    summaries = {name: (float(v.mean()) if len(v) else None, percentiles(v, percents)) for name, v in values.items()}
    itl_mean = float(np.average(itl, weights=itl_weights)) if len(itl) else None
    summaries["itl"] = (itl_mean, weighted_percentiles(itl, itl_weights, percents))
    fields: dict[str, Value] = {}
    for name, (mean, quantiles) in summaries.items():
        median, p95, p99 = quantiles or (None, None, None)
        fields |= {f"mean_{name}_ms": mean, f"median_{name}_ms": median, f"p95_{name}_ms": p95, f"p99_{name}_ms": p99}
    return fields


def _max_running(records: Records) -> int:
    """The most requests that ran at one time, replicas together; a replica between two steps with a gap runs none."""
    if len(records.steps) == 1:
        return int(records.steps[0].running.max(initial=0))
    times, changes = [], []
    for steps in records.steps:
        ends = steps.start_ms + steps.duration_ms
        idle = np.append(steps.start_ms[1:] - ends[:-1] > IDLE_MS, True)[: len(steps)]
        before = np.where(np.append(True, idle[:-1])[: len(steps)], 0, np.append(0, steps.running[:-1])[: len(steps)])
        times += [ends[idle] - IDLE_MS, steps.start_ms]  # one that ends makes room for one that begins
        changes += [-steps.running[idle], steps.running - before]
    # One that ends at the same time makes room first, in whichever replica.
    changed = np.concatenate(changes)
    order = np.lexsort((changed, np.round(np.concatenate(times), 6)))
    return int(np.cumsum(changed[order]).max(initial=0))


def _graph_mode_share(line: Timeline) -> dict[str, Scalar] | None:
    """Share of the steps' time by how the target pass was launched; None where the calibration knows no graphs."""
    weights = np.bincount(line.steps.graph_mode, line.steps.duration_ms, len(GraphMode))
    launched_ms = float(weights.sum() - weights[GraphMode.NONE])
    if not launched_ms:
        return None
    return {name: float(weights[GraphMode[name.upper()]]) / launched_ms for name in GRAPH_MODES}


def _occupancy(records: Records, line: Timeline, duration_ms: float) -> dict[str, Value]:
    """Time averages over the whole duration, idle time as 0: requests running, KV blocks in use; and their like.

    Sums and not `@`: the last bits of a product of vectors of floats depend on the threads that BLAS has.
    """
    steps, step_ms = line.steps, line.steps.duration_ms
    # drafting after the last delivery lies beyond the duration
    within_ms = np.clip(duration_ms - steps.start_ms, 0.0, step_ms)
    block_capacity_ms = (records.usable_blocks or 0) * duration_ms
    total_ms = float(step_ms.sum())
    return {
        "mean_running": float((steps.running * within_ms).sum()) / duration_ms if duration_ms else None,
        "max_running": _max_running(records),
        "kv_utilisation": float((steps.blocks_used * within_ms).sum()) / block_capacity_ms
        if block_capacity_ms
        else None,
        "extrapolated_share": float(steps.extrapolated_ms.sum()) / total_ms if total_ms else None,
    }
