"""The requests of one replica as trace events: one slice each from arrival to last token, divided by what it did.

Requests share lanes, so that there are as many lanes as requests at once and not as many as requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from ..analysis.request_spans import RequestSpans
from ..engine.records import Ints, Phase, Records, Status
from ..workload.requests import Requests
from . import trace_events as events

PHASE_NAMES = {int(phase): phase.name.lower().replace("_", " ") for phase in Phase}
LONGEST_ROUNDING_MS = 1e-6  # by which a user's next request may seem to come before the end of the last


class Lanes:
    """Hands out lanes, the lowest free one first."""

    def __init__(self) -> None:
        self._busy: list[tuple[float, int]] = []
        self._free: list[int] = []
        self._end_ms: list[float] = []

    @property
    def count(self) -> int:
        """Lanes handed out so far."""
        return len(self._end_ms)

    def take(self, start_ms: float, end_ms: float) -> tuple[int, float]:
        """A lane for [start_ms, end_ms], starts in ascending order; and the start, not before the lane's last end."""
        while self._busy and self._busy[0][0] <= start_ms + LONGEST_ROUNDING_MS:
            heappush(self._free, heappop(self._busy)[1])
        if not self._free:
            heappush(self._free, self.count)
            self._end_ms.append(start_ms)
        lane = heappop(self._free)
        start_ms = max(start_ms, self._end_ms[lane])
        self._end_ms[lane] = max(start_ms, end_ms)
        heappush(self._busy, (self._end_ms[lane], lane))
        return lane, start_ms


class RequestEvents:
    """Turns requests of one arm into events; times outside the window (ms) are cut away."""

    def __init__(
        self,
        records: Records,
        requests: Requests,
        spans: RequestSpans,
        slice_names: Sequence[str],
        window_ms: tuple[float, float],
    ) -> None:
        self._left = records.requests
        self._requests = requests
        self._spans = spans
        self._slice_names = slice_names
        self._from_ms, self._to_ms = window_ms

    def chosen(self, replica: int) -> Ints:
        """Requests of a replica that have a part inside the window, in order of arrival."""
        arrival_ms, end_ms = self._spans.arrival_ms, self._spans.end_of_request_ms
        end_ms = np.where(np.isnan(end_ms), arrival_ms, end_ms)
        inside = (self._left.replica == replica) & (end_ms >= self._from_ms) & (arrival_ms <= self._to_ms)
        order = np.argsort(arrival_ms, kind="stable")
        return np.asarray(order[inside[order]])

    def of_replica(self, replica: int, pid: int, stride: int) -> Iterator[str]:
        """Events of a replica's requests. Lane n is the thread `pid + (n + 1) * stride`."""
        lanes = Lanes()
        for request in self.chosen(replica).tolist():
            arrival_ms = float(self._spans.arrival_ms[request])
            if self._left.status[request] == Status.FAILED:
                name = f"request {request} refused"
                yield events.process_instant(name, pid, arrival_ms, self._lengths(request))
                continue
            end_ms = min(float(self._spans.end_of_request_ms[request]), self._to_ms)
            known = lanes.count
            lane, start_ms = lanes.take(max(arrival_ms, self._from_ms), end_ms)
            tid = pid + (lane + 1) * stride
            if lanes.count > known:
                yield from events.thread(pid, tid, f"requests, lane {lane + 1}")
            yield from self._request(request, pid, tid, start_ms, max(start_ms, end_ms))

    def _request(self, request: int, pid: int, tid: int, start_ms: float, end_ms: float) -> Iterator[str]:
        spans = self._spans
        yield events.begin(f"request {request}", pid, tid, start_ms, self._arguments(request))
        first, stop = int(spans.offset[request]), int(spans.offset[request + 1])
        until_ms = min(max(float(spans.start_ms[first]), start_ms), end_ms)
        if until_ms > start_ms:
            yield events.begin("waiting", pid, tid, start_ms)
            yield events.end(pid, tid, until_ms)
        first_token_step, first_token_ms = self._left.first_token_step[request], spans.first_token_ms[request]
        told = not start_ms <= first_token_ms <= end_ms
        for span in range(first, stop):
            since_ms, until_ms = until_ms, min(max(float(spans.end_ms[span]), until_ms), end_ms)
            delivers = not told and spans.last_step[span] >= first_token_step
            if until_ms <= since_ms and not delivers:
                continue
            steps = {"first_step": int(spans.first_step[span]), "last_step": int(spans.last_step[span])}
            yield events.begin(PHASE_NAMES[int(spans.phase[span])], pid, tid, since_ms, steps)
            if delivers:
                told = True
                ttft = {"ttft_ms": self._since_arrival(request, first_token_ms)}
                yield events.instant("first token", pid, tid, min(max(first_token_ms, since_ms), until_ms), ttft)
            yield events.end(pid, tid, until_ms)
        yield events.end(pid, tid, end_ms)

    def _since_arrival(self, request: int, ms: float) -> float:
        return float(ms - self._spans.arrival_ms[request])

    def _lengths(self, request: int) -> events.Arguments:
        return {
            "slice": self._slice_names[int(self._requests.slice_index[request])],
            "prompt_tokens": int(self._requests.prompt_tokens[request]),
            "output_tokens": int(self._left.output_tokens[request]),
        }

    def _arguments(self, request: int) -> events.Arguments:
        counted = ("rounds", "draft_tokens", "accepted_tokens", "prefill_passes", "preemptions")
        return {
            **self._lengths(request),
            **{name: int(getattr(self._left, name)[request]) for name in counted},
            "ttft_ms": self._since_arrival(request, self._spans.first_token_ms[request]),
            "e2el_ms": self._since_arrival(request, self._spans.end_of_request_ms[request]),
        }
