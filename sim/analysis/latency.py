"""Latencies per request, and the gaps between deliveries, in ms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.records import Floats, Ints, Phase, Records
from .timeline import Timeline


@dataclass(frozen=True, slots=True)
class Latencies:
    """One entry per selected request, in ms.

    ttft: arrival to first token. tpot: (last - first token time) / (output - 1), NaN for one-token outputs. e2el:
    arrival to last token. decode: first to last token. queue: arrival to the start of the first step that schedules it.
    """

    ttft: Floats
    tpot: Floats
    e2el: Floats
    decode: Floats
    queue: Floats


def request_latencies(records: Records, line: Timeline, requests: Ints) -> Latencies:
    """Latencies of `requests`, which must all be completed."""
    columns = records.requests
    arrival = columns.arrival_ms[requests]
    first = line.delivery_ms[line.at(requests, columns.first_token_step[requests])]
    last = line.delivery_ms[line.at(requests, columns.finish_step[requests])]
    start = line.steps.start_ms[line.at(requests, columns.first_scheduled_step[requests])]
    gaps = columns.output_tokens[requests] - 1
    decode = last - first
    tpot = np.divide(decode, gaps, out=np.full(len(requests), np.nan), where=gaps > 0)
    return Latencies(first - arrival, tpot, last - arrival, decode, start - arrival)


def inter_token_latencies(records: Records, line: Timeline, requests: Ints) -> tuple[Floats, Ints]:
    """Gaps between consecutive deliveries of a request, pooled over `requests` as `vllm bench serve` does.

    Returns (gap in ms, how often it occurs). Requests that decode in the same two steps share a gap, so the work grows
    with steps and segments, not with tokens.
    """
    segments = records.segments
    selected = np.zeros(len(records.requests), np.bool_)
    selected[requests] = True
    decodes = segments.phase == Phase.DECODE
    index = np.flatnonzero(selected[segments.request] & (decodes | segments.delivers))
    index = index[np.argsort(segments.request[index], kind="stable")]
    request = segments.request[index]
    last = line.at(request, segments.last_step[index])
    first = np.where(decodes[index], line.at(request, segments.first_step[index]), last)

    # A prefill batch of its own may lie between two rounds.
    rounds = np.flatnonzero(~line.steps.only_prefills)
    decodes = decodes[index]
    since, until = np.searchsorted(rounds, first[decodes]), np.searchsorted(rounds, last[decodes], side="right") - 1
    delivers = np.ones(len(index), np.bool_)
    delivers[decodes] = since <= until
    some = since <= until
    since, until = since[some], until[some]
    first, last, request, decodes = (column[delivers] for column in (first, last, request, decodes))
    first[decodes], last[decodes] = rounds[since], rounds[until]

    size = len(rounds) + 1
    changes = np.bincount(since + 1, minlength=size) - np.bincount(until + 1, minlength=size)
    within = np.cumsum(changes[:-1])  # requests that delivered in this round and in the one before
    repeated = np.flatnonzero(within)
    round_ms = line.delivery_ms[rounds]
    step_gaps = round_ms[repeated] - round_ms[repeated - 1]

    follows = np.flatnonzero(request[1:] == request[:-1])
    gaps_between = line.delivery_ms[first[follows + 1]] - line.delivery_ms[last[follows]]
    weights = np.concatenate([within[repeated], np.ones(len(follows), np.int64)])
    return np.concatenate([step_gaps, gaps_between]), weights
