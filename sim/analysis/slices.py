"""Results per slice of the workload: the measures of an arm over the requests of one slice, and its part of the bill.

All slices share the engine, so a slice's latencies hold what the others' requests cost it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ..engine.records import Floats, Ints, Phase, Records, Status
from ..inputs.scenario import Slo
from ..workload.requests import Requests
from .attribution import mean_ttft_parts, time_share
from .cost import successful_tasks
from .fields import SLICE_FIELDS
from .latency import inter_token_latencies, request_latencies
from .metrics import ReplicationMetrics, Totals, Value, field_values, latency_fields
from .slo import meets_deadline, meets_slo
from .timeline import Timeline, completed_requests, prefix_sums, timeline


class SlicePool(NamedTuple):
    """Replicas that serve some slices alone."""

    replicas: int
    slices: Collection[int]


def slice_metrics(
    records: Records,
    requests: Requests,
    whole: ReplicationMetrics,
    *,
    success_rates: Sequence[float | None],
    slo: Slo | None = None,
    first_kept: int = 0,
    pools: Sequence[SlicePool] | None = None,
) -> list[ReplicationMetrics]:
    """The fields of each slice in one replication. success_rates: one per slice. whole: the metrics of all slices.

    Counts are those of the whole run, latencies and goodput those of the requests after the warm-up. The bill of each
    pool (None: one pool for all) is divided by `row_ms`.
    """
    line = timeline(records)
    completed, kept = completed_requests(records), completed_requests(records, first_kept)
    work_ms = row_ms(records, requests, line, len(success_rates))
    bill = bill_shares(work_ms, pools or [SlicePool(len(records.steps), range(len(success_rates)))])
    committed = committed_by_rounds(records)
    found = []
    for index in range(len(success_rates)):
        mine = np.flatnonzero(requests.slice_index == index)
        done = completed[requests.slice_index[completed] == index]
        late = kept[requests.slice_index[kept] == index]
        totals = _work_totals(records, done, committed) | {
            "requests": float(len(mine)),
            "all_requests": float(len(requests)),
            "all_output_tokens": whole.totals["output_tokens"],
            "row_ms": float(work_ms[index]),
            "all_row_ms": float(work_ms.sum()),
            "window_s": whole.totals["window_s"],
            "kept_requests": float(len(late)),
        }
        latencies = request_latencies(records, line, late)
        if slo is not None:
            totals["kept_good_requests"] = float(meets_slo(latencies, slo).sum())
        if "usd" in whole.totals:
            totals["usd"] = whole.totals["usd"] * float(bill[index])
            within = meets_deadline(request_latencies(records, line, done), slo)
            tasks = successful_tasks(requests.slice_index[done], within, success_rates)
            if tasks is not None:
                totals["successful_tasks"] = tasks
        values: dict[str, Value] = {
            **_counts(records, requests, mine, done),
            **latency_fields(latencies, *inter_token_latencies(records, line, late)),
            **{f"mean_ttft_{part}_ms": value for part, value in mean_ttft_parts(records, line, late).items()},
            "time_share": time_share(records, line, late),
        }
        found.append(ReplicationMetrics(field_values(SLICE_FIELDS, values, totals), totals, []))
    return found


def bill_shares(work_ms: Floats, pools: Sequence[SlicePool]) -> Floats:
    """Share of the bill by slice: a pool's replicas are paid by its slices, by the work that they were, idle time too.

    The shares sum to 1; what slices without requests would have had to pay, the others pay.
    """
    shares = np.zeros(len(work_ms))
    for pool in pools:
        members = list(pool.slices)
        if work_ms[members].any():
            shares[members] += pool.replicas * work_ms[members] / work_ms[members].sum()
    return shares / shares.sum() if shares.any() else shares


def row_ms(records: Records, requests: Requests, line: Timeline, slices: int) -> Floats:
    """Milliseconds of steps by slice: each step's time divided by rows of the target pass, drafts verified included.

    Within a step the decode rows are divided by the requests' own mean rows in a round, the prefill rows by their own
    mean chunks. The sum over slices is the time of all steps.
    """
    steps, columns, segments = line.steps, records.requests, records.segments
    decode_rows = steps.decode_rows + steps.draft_tokens
    rows = decode_rows + steps.prefill_tokens
    per_row_ms = np.divide(steps.duration_ms, rows, out=np.zeros(len(steps)), where=rows > 0)
    own_rounds = 1 + columns.draft_tokens / np.maximum(columns.rounds, 1)
    own_chunks = (requests.prompt_tokens - requests.prefix_hit_tokens) / np.maximum(columns.prefill_passes, 1)
    sums = np.zeros(slices)
    for phase, own_rows, all_rows in (
        (Phase.DECODE, own_rounds, decode_rows),
        (Phase.PREFILL, own_chunks, steps.prefill_tokens),
    ):
        chosen = segments.phase == phase
        request = segments.request[chosen]
        start = line.at(request, segments.first_step[chosen])
        stop = line.at(request, segments.last_step[chosen]) + 1
        own = own_rows[request]
        together = np.cumsum(np.bincount(start, own, len(steps) + 1) - np.bincount(stop, own, len(steps) + 1))[:-1]
        each_ms = np.divide(
            per_row_ms * all_rows, together, out=np.zeros(len(steps)), where=(all_rows > 0) & (together > 0.5)
        )
        prefix = prefix_sums(each_ms)
        sums += np.bincount(requests.slice_index[request], own * (prefix[stop] - prefix[start]), slices)
    return sums


def committed_by_rounds(records: Records) -> Ints:
    """Tokens of each completed request that rounds delivered: all but those of prefills (the first, and resumed)."""
    segments = records.segments
    by_prefills = np.bincount(segments.request[segments.delivers], minlength=len(records.requests))
    return np.where(records.requests.status == Status.COMPLETED, records.requests.output_tokens - by_prefills, 0)


def _work_totals(records: Records, done: Ints, committed: Ints) -> Totals:
    columns = records.requests
    totals: Totals = {
        "completed": float(len(done)),
        "output_tokens": float(columns.output_tokens[done].sum()),
        "rounds": float(columns.rounds[done].sum()),
        "committed_by_rounds": float(committed[done].sum()),
        "target_passes": float((columns.prefill_passes[done] + columns.rounds[done]).sum()),
    }
    if len(records.counts.accepted_at):
        num_drafts, accepted = float(columns.num_drafts[done].sum()), float(columns.accepted_tokens[done].sum())
        totals |= {
            "num_drafts": num_drafts,
            "draft_tokens": float(columns.draft_tokens[done].sum()),
            "accepted_tokens": accepted,
            "accepted_and_bonus_tokens": accepted + num_drafts,
        }
    return totals


def _counts(records: Records, requests: Requests, mine: Ints, done: Ints) -> dict[str, Value]:
    columns = records.requests
    speculative = len(records.counts.accepted_at) > 0
    counted = {
        f"spec_decode_{name}": int(getattr(columns, name)[done].sum()) if speculative else None
        for name in ("num_drafts", "draft_tokens", "accepted_tokens")
    }
    return {
        "completed": len(done),
        "failed": len(mine) - len(done),
        "total_input_tokens": int(requests.prompt_tokens[done].sum()),
        "total_output_tokens": int(columns.output_tokens[done].sum()),
        **counted,
        "wasted_draft_tokens": int((columns.draft_tokens[done] - columns.accepted_tokens[done]).sum()),
        "draft_tokens_cut": int(columns.draft_tokens_cut[done].sum()),
        "preemptions": int(columns.preemptions[done].sum()),
    }
