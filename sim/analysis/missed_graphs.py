"""Pure decode steps that did not run in a FULL CUDA graph, and the captured size that would have held them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cost.step_costs import GraphMode
from ..engine.records import Records


class MissedGraphs(NamedTuple):
    """Time of steps that no captured size holds, of ragged ones, and of all steps.

    uniform_ms: every request has its 1 + k tokens; rows, requests: those that took most of it. ragged_ms: requests
    verify unequal numbers of drafts (a look-up proposed fewer, a budget cut some), so that no FULL
    graph fits whatever is captured.
    """

    uniform_ms: float
    ragged_ms: float
    all_ms: float
    rows: int
    requests: int


def missed_graphs(records: Records, tokens_per_round: int) -> MissedGraphs:
    """For an engine that captures FULL graphs of rounds of `tokens_per_round` tokens."""
    all_ms = ragged_ms = 0.0
    by_requests: dict[int, float] = {}
    for steps in records.steps:
        duration_ms = steps.duration_ms
        all_ms += float(duration_ms.sum())
        missed = (steps.graph_mode > GraphMode.FULL) & (steps.prefill_rows == 0)
        uniform = steps.draft_tokens == steps.decode_rows * (tokens_per_round - 1)
        ragged_ms += float(duration_ms[missed & ~uniform].sum())
        chosen = missed & uniform
        for requests, ms in enumerate(np.bincount(steps.decode_rows[chosen], duration_ms[chosen]).tolist()):
            if ms:
                by_requests[requests] = by_requests.get(requests, 0.0) + ms
    worst = max(by_requests, key=lambda requests: by_requests[requests], default=0)
    return MissedGraphs(sum(by_requests.values()), ragged_ms, all_ms, worst * tokens_per_round, worst)
