"""Where requests spend their time: each step's parts divided over the requests that it schedules, holds or leaves out.

A part of a step counts whole for every request in it, so shares answer "what did a request wait for", not "what was the
GPU busy with". Prefix sums over steps make a segment cost the same however long it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..engine.records import Floats, Ints, Phase, Records
from .timeline import Timeline, prefix_sums

SHARES = ("waiting", "prefill", "drafting", "verification", "sampling", "kv_update", "host", "prefill_interference")
TTFT_PARTS = ("queue", "prefill", "drafter", "interference")


@dataclass(frozen=True, slots=True)
class _Spans:
    """Segments of the selected requests: phase and positions [start, stop) in the timeline."""

    line: Timeline
    phase: Ints
    start: Ints
    stop: Ints

    def total(self, column: str, chosen: NDArray[np.bool_]) -> float:
        """Sum of a column of the steps over all steps of the chosen segments."""
        return self.total_of(getattr(self.line.steps, column), chosen)

    def total_of(self, values: Floats, chosen: NDArray[np.bool_]) -> float:
        """The same for values that are no column: one per step."""
        prefix = prefix_sums(values)
        return float((prefix[self.stop[chosen]] - prefix[self.start[chosen]]).sum())


def time_share(records: Records, line: Timeline, requests: Ints) -> dict[str, float | None]:
    """Share of the summed end-to-end latency of `requests` (all completed) by what it was spent on; sums to 1.

    waiting: before the first step that schedules the request, preempted, or resident without being reached while
    prefilling. The target's time is prefill for a prefilling request; for a decoding one it is verification (the plain
    decode of a baseline too) up to the cost without the step's prefill rows, and prefill_interference beyond. A step
    that leaves a decoding resident out, as one that only prefills does, is prefill_interference. Drafting after the
    last delivery goes to nobody.
    """
    columns = records.requests
    arrival_ms = columns.arrival_ms[requests]
    finish = line.at(requests, columns.finish_step[requests])
    e2el_ms = float((line.delivery_ms[finish] - arrival_ms).sum())
    if e2el_ms <= 0:
        return dict.fromkeys(SHARES)
    first = line.at(requests, columns.first_scheduled_step[requests])
    spans = _spans(records, line, requests, columns.finish_step)
    prefill, decode = spans.phase == Phase.PREFILL, spans.phase == Phase.DECODE
    scheduled = prefill | decode
    left_out = spans.phase == Phase.DECODE_LEFT_OUT
    paused = _paused_ms(spans, decode)
    beside_prefills = line.steps.target_ms - line.steps.target_decode_ms
    undelivered = float(line.steps.draft_ms[finish].sum()) if records.async_delivery else 0.0
    spent = {
        "waiting": float((line.steps.start_ms[first] - arrival_ms).sum())
        + spans.total("duration_ms", ~(scheduled | left_out)),
        "prefill": spans.total("target_ms", prefill),
        "drafting": spans.total("draft_ms", scheduled) - paused["draft_ms"] - undelivered,
        "verification": spans.total("target_decode_ms", decode),
        "sampling": spans.total("sampling_ms", scheduled) - paused["sampling_ms"],
        "kv_update": spans.total("kv_update_ms", scheduled) - paused["kv_update_ms"],
        "host": spans.total("host_ms", scheduled) - paused["host_ms"],
        "prefill_interference": spans.total_of(beside_prefills, decode)
        + sum(paused.values())
        + spans.total("duration_ms", left_out),
    }
    return {name: spent[name] / e2el_ms for name in SHARES}


def _paused_ms(spans: _Spans, decode: NDArray[np.bool_]) -> dict[str, float]:
    """What prefill batches of their own took beside the target while requests were decoding: all is interference."""
    steps = spans.line.steps
    alone = steps.only_prefills
    columns = ("draft_ms", "sampling_ms", "kv_update_ms", "host_ms")
    return {column: spans.total_of(np.where(alone, getattr(steps, column), 0.0), decode) for column in columns}


def mean_ttft_parts(records: Records, line: Timeline, requests: Ints) -> dict[str, float | None]:
    """The mean TTFT of `requests` (all completed) in ms, divided; the parts sum to it.

    queue: arrival to the start of the first step that schedules the request; from there to its first token: drafter =
    drafting in its steps (where tokens leave before drafting, not that of the last one); interference = steps that do
    not schedule it, and target time beyond that of its own rows alone; prefill = its own rows, and the host, sampling
    and KV updates of its steps.
    """
    if not len(requests):
        return dict.fromkeys(TTFT_PARTS)
    columns = records.requests
    first = line.at(requests, columns.first_scheduled_step[requests])
    spans = _spans(records, line, requests, columns.first_token_step)
    scheduled = spans.phase == Phase.PREFILL
    own_ms = float(columns.own_prefill_ms[requests].sum())
    drafter = spans.total("draft_ms", scheduled)
    if records.async_delivery:
        drafter -= float(line.steps.draft_ms[line.at(requests, columns.first_token_step[requests])].sum())
    around = sum(spans.total(column, scheduled) for column in ("host_ms", "sampling_ms", "kv_update_ms"))
    parts = {
        "queue": float((line.steps.start_ms[first] - columns.arrival_ms[requests]).sum()),
        "prefill": own_ms + around,
        "drafter": drafter,
        "interference": spans.total("target_ms", scheduled) - own_ms + spans.total("duration_ms", ~scheduled),
    }
    # Differences of sums leave rounding behind, which is no time that anybody waited.
    noise_ms = 1e-9 * sum(abs(part) for part in parts.values())
    return {name: parts[name] / len(requests) if abs(parts[name]) > noise_ms else 0.0 for name in TTFT_PARTS}


def _spans(records: Records, line: Timeline, requests: Ints, until_step: Ints) -> _Spans:
    """Segments of `requests` that begin no later than each one's `until_step` (which ends a segment)."""
    segments = records.segments
    selected = np.zeros(len(records.requests), np.bool_)
    selected[requests] = True
    chosen = selected[segments.request] & (segments.first_step <= until_step[segments.request])
    request = segments.request[chosen]
    start = line.at(request, segments.first_step[chosen])
    return _Spans(line, segments.phase[chosen], start, line.at(request, segments.last_step[chosen]) + 1)
