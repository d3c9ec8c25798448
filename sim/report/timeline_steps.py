"""The steps of one replica as trace events: a slice per step, its phases inside, and counters beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis.step_phases import STEP_PHASES, phase_bounds_ms
from ..cost.step_costs import GraphMode
from ..engine.records import Ints, Steps
from . import trace_events as events

STEPS_AT_ONCE = 4096  # bounds the memory that Python numbers take
LONGEST_ROUNDING_MS = 1e-6  # a gap between two steps that is no pause
NAMES = [phase.replace("_", " ") for phase in STEP_PHASES]


def step_events(steps: Steps, chosen: Ints, pid: int) -> Iterator[str]:
    """Events of the steps at the indices `chosen` (ascending), in order of time, on the thread whose id is `pid`."""
    bounds_ms = phase_bounds_ms(steps)
    next_start_ms = np.append(steps.start_ms[1:], np.inf)
    pause = next_start_ms - bounds_ms[:, -1] > LONGEST_ROUNDING_MS
    counters = _Counters(pid, _drafts_vary(steps))
    for first in range(0, len(chosen), STEPS_AT_ONCE):
        part = chosen[first : first + STEPS_AT_ONCE]
        columns = {name: getattr(steps, name)[part].tolist() for name in Steps.__dataclass_fields__}
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        for index, row, bounds, pauses in zip(
            part.tolist(), rows, bounds_ms[part].tolist(), pause[part].tolist(), strict=True
        ):
            yield from counters.at_step(row)
            yield events.begin(_name(row), pid, pid, bounds[0], _arguments(index, row))
            for name, start, stop in zip(NAMES, bounds[:-1], bounds[1:], strict=True):
                if stop > start:
                    yield events.begin(name, pid, pid, start)
                    yield events.end(pid, pid, stop)
            yield events.end(pid, pid, bounds[-1])
            if pauses:
                yield from counters.at_pause(bounds[-1])


def _drafts_vary(steps: Steps) -> bool:
    decodes = steps.decode_rows > 0
    per_row = steps.draft_tokens[decodes] / steps.decode_rows[decodes]
    return bool(len(per_row) and per_row.min() != per_row.max())


def _name(row: dict[str, Any]) -> str:
    if row["decode_rows"] and row["prefill_rows"]:
        return "mixed step"
    return "decode step" if row["decode_rows"] else "prefill step"


def _arguments(index: int, row: dict[str, Any]) -> events.Arguments:
    return {
        "step": index,
        "decode_rows": row["decode_rows"],
        "drafts_verified": row["draft_tokens"],
        "prefill_rows": row["prefill_rows"],
        "prompt_tokens": row["prefill_tokens"],
        "committed_tokens": row["committed_tokens"],
        "context_tokens": row["context_tokens"],
        "graph_mode": GraphMode(row["graph_mode"]).name,
        "extrapolated": row["extrapolated_ms"] > 0,
        "running": row["running"],
        "waiting": row["waiting"],
    }


@dataclass(slots=True)
class _Counters:
    """Counter events where a value changes; in a pause nothing runs and no tokens come."""

    pid: int
    drafts_vary: bool
    requests: tuple[int, int] | None = None
    blocks: int | None = None
    tokens: int | None = None
    drafts: float | None = None

    def at_step(self, row: dict[str, Any]) -> Iterator[str]:
        now = row["start_ms"]
        yield from self._level(now, row["running"], row["waiting"], row["blocks_used"], row["committed_tokens"])
        if self.drafts_vary and row["decode_rows"]:
            drafts = row["draft_tokens"] / row["decode_rows"]
            if drafts != self.drafts:
                self.drafts = drafts
                yield events.counter("drafts", self.pid, now, {"per decode row": drafts})

    def at_pause(self, now: float) -> Iterator[str]:
        yield from self._level(now, 0, 0, 0, 0)

    def _level(self, now: float, running: int, waiting: int, blocks: int, tokens: int) -> Iterator[str]:
        if (running, waiting) != self.requests:
            self.requests = (running, waiting)
            yield events.counter("requests", self.pid, now, {"running": running, "waiting": waiting})
        if blocks != self.blocks:
            self.blocks = blocks
            yield events.counter("KV blocks", self.pid, now, {"used": blocks})
        if tokens != self.tokens:
            self.tokens = tokens
            yield events.counter("tokens", self.pid, now, {"committed by the step": tokens})
