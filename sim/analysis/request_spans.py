"""What each request was doing from its arrival to its last token, as spans of time without gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engine.records import Floats, Ints, Records, Status
from .paused_decodes import segments_with_pauses
from .timeline import timeline


@dataclass(frozen=True, slots=True)
class RequestSpans:
    """Spans of all completed requests, ordered by request and time: those of request i are [offset[i], offset[i + 1]).

    phase: `Phase`. start_ms, end_ms: a span begins with its first step and ends where the next one begins, the last one
    with the delivery of the last token; from arrival to the first span the request waits. first_step, last_step: of its
    replica. arrival_ms, first_token_ms, end_of_request_ms: one per request, NaN for the last two if it failed.
    """

    offset: Ints
    phase: Ints
    start_ms: Floats
    end_ms: Floats
    first_step: Ints
    last_step: Ints
    arrival_ms: Floats
    first_token_ms: Floats
    end_of_request_ms: Floats


def request_spans(records: Records) -> RequestSpans:
    """The spans behind the latencies of `records`: wait and spans of a request sum to its E2E latency."""
    line, columns = timeline(records), records.requests
    segments = segments_with_pauses(records, line)
    order = np.argsort(segments.request, kind="stable")
    request, first_step = segments.request[order], segments.first_step[order]
    offset = np.searchsorted(request, np.arange(len(columns) + 1))
    done = np.flatnonzero(columns.status == Status.COMPLETED)
    first_token_ms, end_of_request_ms = (np.full(len(columns), np.nan) for _ in range(2))
    first_token_ms[done] = line.delivery_ms[line.at(done, columns.first_token_step[done])]
    end_of_request_ms[done] = line.delivery_ms[line.at(done, columns.finish_step[done])]
    start_ms = line.steps.start_ms[line.at(request, first_step)]
    end_ms = np.append(start_ms[1:], np.nan)[: len(request)]
    last = offset[done + 1] - 1
    end_ms[last] = np.maximum(end_of_request_ms[done], start_ms[last])
    return RequestSpans(
        offset=offset,
        phase=segments.phase[order],
        start_ms=start_ms,
        end_ms=end_ms,
        first_step=first_step,
        last_step=segments.last_step[order],
        arrival_ms=columns.arrival_ms,
        first_token_ms=first_token_ms,
        end_of_request_ms=end_of_request_ms,
    )
