"""The rows of a trace that a scenario asks for: a window of time, sped up or slowed down, the first n requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..formats.text_file import MAX_BYTES
from ..formats.trace_columns import TraceColumns
from ..formats.traces import read_trace
from ..inputs.errors import InputError
from ..inputs.scenario import TraceArrivals
from ..inputs.source import file_defect
from .clock_ticks import clock_tick_ms, spread_over_ticks
from .problem_at import ProblemAt
from .streams import Stream, generator


def recorded_trace(arrivals: TraceArrivals, base_dir: Path, problem: ProblemAt) -> TraceColumns:
    """The whole trace as its file has it. Raises InputError."""
    path = base_dir / arrivals.path
    if defect := file_defect(path, MAX_BYTES):
        raise InputError([problem("workload.arrivals.path", *defect)])
    return read_trace(path, arrivals.format, arrivals.columns)


def trace_rows(
    arrivals: TraceArrivals,
    requests: int | None,
    base_dir: Path,
    seed: int,
    replication: int,
    problem: ProblemAt,
) -> TraceColumns:
    """Cut `window_s` [from, to) in the trace's own seconds, divide the gaps by `scale`, keep the first `requests` rows.

    Rows are chosen by their recorded times, whatever the seed; then bursts of a coarse clock are spread. Time 0 is the
    window's start, or the first row without one. No times where `rate` takes their place. Raises InputError.
    """
    trace = recorded_trace(arrivals, base_dir, problem)
    if trace.arrival_ms is None and (arrivals.rate is None or arrivals.window_s is not None):
        what, rule = f"{arrivals.path!r} has lengths, but no arrivals", "a trace says when requests arrive"
        field = "workload.arrivals.path" if arrivals.rate is None else "workload.arrivals.window_s"
        remedy = "add `rate: …` for Poisson arrivals" if arrivals.rate is None else "remove the window"
        raise InputError([problem(field, what, rule, remedy)])
    start_ms, first, end = 0.0, 0, len(trace)
    if arrivals.window_s is not None and trace.arrival_ms is not None:
        start_ms, end_ms = (second * 1000 for second in arrivals.window_s)
        first, end = np.searchsorted(trace.arrival_ms, [start_ms, end_ms]).tolist()
        if first >= end:
            what = f"no request of {str(base_dir / arrivals.path)!r} arrives in {arrivals.window_s}"
            rule = f"the window is [from, to) within the trace's {trace.arrival_ms[-1] / 1000:.0f} seconds"
            raise InputError([problem("workload.arrivals.window_s", what, rule, "move or widen the window")])
    if requests is not None:
        if requests > end - first:
            what, rule = f"{requests} requests of a trace that has {end - first} there", "a trace is not repeated"
            remedy = f"ask for at most {end - first}, or leave it out for all of them"
            raise InputError([problem("workload.requests", what, rule, remedy)])
        end = first + requests
    if trace.arrival_ms is None or arrivals.rate is not None:
        return replace(trace, arrival_ms=None).rows(first, end)
    tick_ms = clock_tick_ms(trace.arrival_ms) if arrivals.spread_bursts else None
    if tick_ms is not None:
        rng = generator(seed, replication, Stream.CLOCK_TICKS)
        trace = replace(trace, arrival_ms=spread_over_ticks(trace.arrival_ms, tick_ms, rng))
    chosen = trace.rows(first, end)
    assert chosen.arrival_ms is not None
    with np.errstate(over="ignore"):  # the caller refuses times that are not finite
        return replace(chosen, arrival_ms=(chosen.arrival_ms - start_ms) / arrivals.scale)
