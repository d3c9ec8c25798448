"""The rows of a trace that a scenario asks for: a window of time, sped up or slowed down, the first n requests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..formats.text_file import MAX_BYTES
from ..formats.trace_columns import TraceColumns
from ..formats.traces import read_trace
from ..inputs.errors import InputError
from ..inputs.scenario import TraceArrivals
from ..inputs.source import file_defect
from .problem_at import ProblemAt


def trace_rows(arrivals: TraceArrivals, requests: int | None, base_dir: Path, problem: ProblemAt) -> TraceColumns:
    """Cut `window_s` [from, to) in the trace's own seconds, divide the gaps by `scale`, keep the first `requests` rows.

    Time 0 is the window's start, or the first row without one. Raises InputError.
    """
    path = base_dir / arrivals.path
    if defect := file_defect(path, MAX_BYTES):
        raise InputError([problem("workload.arrivals.path", *defect)])
    trace = read_trace(path, arrivals.format)
    start_ms, rows = 0.0, slice(0, len(trace))
    if arrivals.window_s is not None:
        start_ms, end_ms = (second * 1000 for second in arrivals.window_s)
        first, last = np.searchsorted(trace.arrival_ms, [start_ms, end_ms])
        rows = slice(int(first), int(last))
        if first >= last:
            what = f"no request of {str(path)!r} arrives in {arrivals.window_s}"
            rule = f"the window is [from, to) within the trace's {trace.arrival_ms[-1] / 1000:.0f} seconds"
            raise InputError([problem("workload.arrivals.window_s", what, rule, "move or widen the window")])
    count = rows.stop - rows.start
    if requests is not None:
        if requests > count:
            what, rule = f"{requests} requests of a trace that has {count} there", "a trace is not repeated"
            remedy = f"ask for at most {count}, or leave it out for all of them"
            raise InputError([problem("workload.requests", what, rule, remedy)])
        rows = slice(rows.start, rows.start + requests)
    with np.errstate(over="ignore"):  # the caller refuses times that are not finite
        arrival_ms = (trace.arrival_ms[rows] - start_ms) / arrivals.scale
    return TraceColumns(arrival_ms, trace.prompt_tokens[rows], trace.output_tokens[rows])
