"""Overload of open traffic: a queue that grows, and the request rate that the engine carries while it grows.

Two signs are needed, both read from the records alone, so that they hold for any scheduler and any costs:

* the number in system at the last arrival is beyond what its own ups and downs explain. Over equal blocks of the
  arrival window its increments are those of a random walk when the engine is saturated, and smaller otherwise;
* the offered output tokens exceed what the engine can commit. Where requests wait most of the time towards the end,
  that is the rate of the steps that left some waiting. Where they do not, the batch still grows, and so does the rate:
  N running requests commit N / (alpha + beta N) tokens per ms, which tends to 1 / beta. Over the steps of a block,
  busy time = beta * tokens + alpha * sum(tokens / N): a line through the blocks. So a run that is still filling its
  batch is not taken for an overloaded one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..engine.records import Floats, Ints, Records, Status

BLOCKS = 20  # of the arrival window: enough to estimate a variance, few enough that a block outlasts a burst
LATE_BLOCKS = 5
MIN_ARRIVALS = 2 * BLOCKS
GROWTH_Z = 1.5  # standard deviations of a random walk


class Overload(NamedTuple):
    """Whether a queue grows, and the requests per second carried while it does (None unless detected)."""

    detected: bool
    carried_request_rate: float | None


class OverloadEvidence(NamedTuple):
    """What one replication says about overload, small enough to keep.

    increments: growth of the number in system over each block. blocks: [busy ms, tokens, sum of tokens / N] by block.
    arrivals, output_tokens: of completed requests. available_ms: arrival window times replicas. carried_tokens,
    carried_ms: what was committed from mid arrivals until half of the final backlog was done, and how long that took.
    """

    increments: Ints
    blocks: Floats
    arrivals: int
    output_tokens: float
    available_ms: float
    carried_tokens: float
    carried_ms: float


class _Traffic(NamedTuple):
    """One replication: completed requests' times in ms, sorted, and the records they come from."""

    arrivals: Floats
    completions: Floats
    records: Records


def overload_evidence(records: Records) -> OverloadEvidence | None:
    """Evidence of one replication; None with fewer than 40 completed requests or all arriving at one instant."""
    requests = records.requests
    done = requests.status == Status.COMPLETED
    arrivals = np.sort(requests.arrival_ms[done])
    if len(arrivals) < MIN_ARRIVALS or arrivals[0] == arrivals[-1]:
        return None
    completions = np.empty(len(requests))
    for replica in range(len(records.steps)):
        here = done & (requests.replica == replica)
        completions[here] = records.delivery_ms(replica)[requests.finish_step[here]]
    one = _Traffic(arrivals, np.sort(completions[done]), records)
    edges = np.linspace(arrivals[0], arrivals[-1], BLOCKS + 1)
    arrived = np.searchsorted(arrivals, edges, side="right")
    return OverloadEvidence(
        np.diff(arrived - np.searchsorted(one.completions, edges, side="right")),
        _blocks(records, edges),
        len(arrivals),
        float(requests.output_tokens[done].sum()),
        float(np.ptp(arrivals)) * len(records.steps),
        *_carried(one),
    )


def judge_overload(replications: Sequence[OverloadEvidence]) -> Overload:
    """Overload of open traffic, judged over all replications of an arm together.

    For traffic with arrival times of its own; a closed loop cannot be overloaded and must not be asked about.
    """
    if not replications or not (_queue_grows(replications) and _offered_exceeds_capacity(replications)):
        return Overload(False, None)
    rate_per_ms = sum(one.carried_tokens for one in replications) / sum(one.carried_ms for one in replications)
    requests = sum(one.arrivals for one in replications)
    return Overload(True, rate_per_ms * 1e3 * requests / sum(one.output_tokens for one in replications))


def detect_overload(replications: Sequence[Records]) -> Overload:
    """`judge_overload` from the records themselves."""
    return judge_overload([one for one in map(overload_evidence, replications) if one is not None])


def _queue_grows(replications: Sequence[OverloadEvidence]) -> bool:
    growth = float(sum(one.increments.sum() for one in replications))
    variance = sum(BLOCKS * float(one.increments.var(ddof=1)) for one in replications)
    return bool(growth > GROWTH_Z * np.sqrt(variance))


def _offered_exceeds_capacity(replications: Sequence[OverloadEvidence]) -> bool:
    """Offered work above the fitted limit by more than the standard error of a Poisson count of arrivals."""
    busy_ms, tokens, tokens_per_n = np.concatenate([one.blocks for one in replications], axis=1)
    if not tokens.any():
        return False
    beta, alpha = np.linalg.lstsq(np.column_stack([tokens, tokens_per_n]), busy_ms, rcond=None)[0]
    if alpha < 0:  # more requests never speed it up: a plain queue
        beta = busy_ms.sum() / tokens.sum()
    arrivals = sum(one.arrivals for one in replications)
    offered_ms = beta * sum(one.output_tokens for one in replications)
    available_ms = sum(one.available_ms for one in replications)
    return bool(offered_ms > available_ms * (1 + arrivals**-0.5))


def _blocks(records: Records, edges: Floats) -> Floats:
    """Per block of the arrival window, replicas summed: busy ms, tokens committed, sum over steps of tokens / N."""
    sums = np.zeros((3, BLOCKS))
    for steps in records.steps:
        within = (steps.start_ms >= edges[0]) & (steps.start_ms < edges[-1])
        block = np.searchsorted(edges, steps.start_ms[within], side="right") - 1
        tokens = steps.committed_tokens[within]
        in_system = np.maximum(steps.running + steps.waiting, 1)[within]
        for row, weights in enumerate((steps.duration_ms[within], tokens, tokens / in_system)):
            sums[row] += np.bincount(block, weights, BLOCKS)
    return sums


def _carried(one: _Traffic) -> tuple[float, float]:
    """Tokens committed from mid arrivals until half of the final backlog is done, and the ms that took.

    Tokens, not completions: those lag behind the work while requests pile up half finished.
    """
    start = (one.arrivals[0] + one.arrivals[-1]) / 2
    done_at_last_arrival = int(np.searchsorted(one.completions, one.arrivals[-1], side="right"))
    end = max(one.arrivals[-1], one.completions[(done_at_last_arrival + len(one.completions) - 1) // 2])
    tokens = 0.0
    for steps in one.records.steps:
        ends = steps.start_ms + steps.duration_ms
        tokens += float(steps.committed_tokens[(ends > start) & (ends <= end)].sum())
    return tokens, float(end - start)
