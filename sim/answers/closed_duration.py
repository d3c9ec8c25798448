"""Closed traffic with `duration_s`: how many requests its users send is known only when they have sent them.

The requests of a replication are a list without end of which only a beginning is drawn; a run that came to the end of
its list before the end of its time is run again with a longer one. The first requests are the same in both.
"""

from __future__ import annotations

from ..engine.records import Records, Status
from ..inputs.errors import InputError
from ..inputs.numbers import MAX_REQUESTS
from ..inputs.scenario import Closed, Workload
from ..workload.problem_at import ProblemAt
from ..workload.requests import Requests

_FIRST_LIST = 256
_REQUESTS_PER_USER = 4
_SPARE = 1.1
_MOST_GROWTH = 64.0


def first_length(workload: Workload) -> int | None:
    """Requests to begin with; None where the workload says how many there are."""
    if not isinstance(workload.arrivals, Closed) or workload.requests is not None:
        return None
    return min(MAX_REQUESTS, max(_FIRST_LIST, _REQUESTS_PER_USER * workload.arrivals.concurrency))


def longer_list(requests: Requests, records: Records, problem: ProblemAt) -> int | None:
    """How many requests the next run needs, or None if this one did not come to the end of its list.

    Raises InputError beyond the most that a replication can hold.
    """
    if requests.send_until_ms is None or len(records.requests) < len(requests):
        return None
    if not (records.requests.status == Status.COMPLETED).any():
        return None  # nothing fits into the engine: refused requests take no time, however many there are
    if len(requests) == MAX_REQUESTS:
        what = f"more than {MAX_REQUESTS} requests are sent in that time"
        raise InputError([problem("workload.duration_s", what, "a replication holds no more", "give a shorter time")])
    reached_ms = float(records.requests.arrival_ms.max())
    growth = _SPARE * requests.send_until_ms / max(reached_ms, requests.send_until_ms / _MOST_GROWTH)
    return min(MAX_REQUESTS, int(len(requests) * max(growth, _SPARE)) + 1)
