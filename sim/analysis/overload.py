"""Overload of open traffic: a queue that grows, and the request rate that the engine carries while it grows.

Two signs are needed, both read from the records alone, so that they hold for any scheduler and any costs:

* the number in system at the last arrival is beyond what its own ups and downs explain. Over equal blocks of the
  arrival window its increments are those of a random walk when the engine is saturated, and smaller otherwise;
* the offered output tokens exceed what the engine can commit. Where requests wait most of the time towards the end,
  that is the rate of the steps that left some waiting. Where they do not, the batch still grows, and so does the rate:
  N running requests commit N / (alpha + beta N) tokens per ms, which tends to 1 / beta. Over the steps of a block,
  busy time = beta * tokens + alpha * sum(tokens / N): a line through the blocks. So a run that is still filling its
  batch is not taken for an overloaded one.

How long a run must be: by chance n requests offer more or less work than they should, by a relative standard error of
sqrt((ca^2 + cs^2) / n), with the coefficients of variation of gaps and output lengths. An excess is found reliably from
three standard errors on: under Poisson arrivals of geometric lengths with 18 / excess^2 requests over all replications,
1,800 for 10 %, 20,000 for 3 %. A smaller excess of a shorter run looks like a busy hour, and harms no more than one.

The carried rate is the second sign's: what can be committed over the mean output length. Completions would lag behind
the work while requests pile up half finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..engine.records import Floats, Ints, Records, Status, Steps

BLOCKS = 20  # of the arrival window: enough to estimate a variance, few enough that a block outlasts a burst
LATE_BLOCKS = 5  # the end of the window
MIN_ARRIVALS = 2 * BLOCKS
GROWTH_Z = 1.5  # standard deviations of a random walk


class Overload(NamedTuple):
    """Whether a queue grows, and the requests per second carried while it does (None unless detected)."""

    detected: bool
    carried_request_rate: float | None


class PoolEvidence(NamedTuple):
    """What one replication says about the overload of one pool of replicas, small enough to keep.

    increments: growth of the number in system over each block. blocks: the rows of `_blocks`, by block. left_waiting:
    ms and tokens of all steps, up to the last, that left requests waiting. arrivals, output_tokens,
    squared_output_tokens: number of completed requests, sum of their lengths and of the squares. window_ms: first to
    last arrival.
    """

    increments: Ints
    blocks: Floats
    left_waiting: Floats
    arrivals: int
    output_tokens: float
    squared_output_tokens: float
    window_ms: float
    replicas: int


class OverloadEvidence(NamedTuple):
    """What one replication says: for each pool, None where it served too few requests to tell."""

    pools: tuple[PoolEvidence | None, ...]


def overload_evidence(records: Records, pools: Sequence[int] | None = None) -> OverloadEvidence | None:
    """Evidence of one replication; None with fewer than 40 completed requests or all arriving at one instant.

    pools: how many replicas each has, in order, where slices have replicas of their own. Pools do not help each other
    out, so each is judged by itself.
    """
    first = 0
    found = []
    for replicas in pools or [len(records.steps)]:
        found.append(_pool_evidence(records, range(first, first + replicas)))
        first += replicas
    return OverloadEvidence(tuple(found)) if any(one is not None for one in found) else None


def judge_overload(replications: Sequence[OverloadEvidence]) -> Overload:
    """Overload of open traffic, judged over all replications of an arm together: that of any pool.

    For traffic with arrival times of its own; a closed loop cannot be overloaded and must not be asked about. The
    carried rate is that of all pools, what is offered to those that keep up included.
    """
    detected, carried = False, 0.0
    for pool in zip(*(one.pools for one in replications), strict=True):
        seen = [one for one in pool if one is not None]
        rate = _carried_by_an_overloaded(seen)
        detected |= rate is not None
        if rate is None and seen:
            rate = sum(one.arrivals for one in seen) / sum(one.window_ms for one in seen) * 1e3
        carried += rate or 0.0
    return Overload(True, carried) if detected else Overload(False, None)


def detect_overload(replications: Sequence[Records]) -> Overload:
    """`judge_overload` from the records themselves."""
    return judge_overload([one for one in map(overload_evidence, replications) if one is not None])


def _pool_evidence(records: Records, replicas: range) -> PoolEvidence | None:
    requests = records.requests
    within = (requests.replica >= replicas.start) & (requests.replica < replicas.stop)
    done = within & (requests.status == Status.COMPLETED)
    arrivals = np.sort(requests.arrival_ms[done])
    if len(arrivals) < MIN_ARRIVALS or arrivals[0] == arrivals[-1]:
        return None
    finish_ms = np.empty(len(requests))
    left_waiting = np.zeros(2)
    for replica in replicas:
        steps = records.steps[replica]
        here = done & (requests.replica == replica)
        finish_ms[here] = records.delivery_ms(replica)[requests.finish_step[here]]
        waits = steps.waiting > 0
        left_waiting += steps.duration_ms[waits].sum(), steps.committed_tokens[waits].sum()
    edges = np.linspace(arrivals[0], arrivals[-1], BLOCKS + 1)
    arrived = np.searchsorted(arrivals, edges, side="right")
    completed = np.searchsorted(np.sort(finish_ms[done]), edges, side="right")
    lengths = requests.output_tokens[done].astype(np.float64)
    return PoolEvidence(
        increments=np.diff(arrived - completed),
        blocks=_blocks([records.steps[replica] for replica in replicas], edges),
        left_waiting=left_waiting,
        arrivals=len(arrivals),
        output_tokens=float(lengths.sum()),
        squared_output_tokens=float((lengths * lengths).sum()),
        window_ms=float(np.ptp(arrivals)),
        replicas=len(replicas),
    )


def _carried_by_an_overloaded(pool: Sequence[PoolEvidence]) -> float | None:
    """Requests per second that a pool carries while its queue grows; None where it does not grow."""
    if not pool or not _queue_grows(pool):
        return None
    arrivals = sum(one.arrivals for one in pool)
    output_tokens = sum(one.output_tokens for one in pool)
    work_ms = _ms_per_token_at_the_limit(pool) * output_tokens / pool[0].replicas
    # by more than the standard error of the work offered: arrivals and lengths by chance
    relative_error = sum(one.squared_output_tokens for one in pool) ** 0.5 / output_tokens
    if work_ms <= sum(one.window_ms for one in pool) * (1 + relative_error):
        return None
    return arrivals / work_ms * 1e3


def _queue_grows(replications: Sequence[PoolEvidence]) -> bool:
    growth = float(sum(one.increments.sum() for one in replications))
    variance = sum(BLOCKS * float(one.increments.var(ddof=1)) for one in replications)
    return bool(growth > GROWTH_Z * np.sqrt(variance))


def _ms_per_token_at_the_limit(replications: Sequence[PoolEvidence]) -> float:
    """Replica time per token committed with as many requests as one likes; 0 where nothing was committed."""
    blocks = np.concatenate([one.blocks for one in replications], axis=1)
    busy_ms, tokens, tokens_per_running, waiting_ms = blocks
    late = np.tile(np.arange(BLOCKS) >= BLOCKS - LATE_BLOCKS, len(replications))
    left_ms, left_tokens = np.sum([one.left_waiting for one in replications], axis=0)
    if waiting_ms[late].sum() > busy_ms[late].sum() / 2 and left_tokens:
        return float(left_ms / left_tokens)
    if not tokens.any():
        return 0.0
    beta, alpha = np.linalg.lstsq(np.column_stack([tokens, tokens_per_running]), busy_ms, rcond=None)[0]
    return float(beta if alpha > 0 else busy_ms.sum() / tokens.sum())


def _blocks(replicas: Sequence[Steps], edges: Floats) -> Floats:
    """Sums over the steps in each block of the arrival window, all replicas.

    Rows: busy ms, tokens committed, tokens / running requests, and ms of the steps that left some waiting.
    """
    sums = np.zeros((4, BLOCKS))
    for steps in replicas:
        within = (steps.start_ms >= edges[0]) & (steps.start_ms < edges[-1])
        block = np.searchsorted(edges, steps.start_ms[within], side="right") - 1
        step_ms, tokens = steps.duration_ms[within], steps.committed_tokens[within]
        running = np.maximum(steps.running[within], 1)
        columns = (step_ms, tokens, tokens / running, step_ms * (steps.waiting[within] > 0))
        for row, column in enumerate(columns):
            sums[row] += np.bincount(block, column, BLOCKS)
    return sums
