"""The rows of a trace that a scenario asks for: a window of time, sped up or slowed down, the first n requests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..formats.text_file import MAX_BYTES
from ..formats.trace_columns import TraceColumns
from ..formats.traces import read_trace
from ..inputs.errors import InputError
from ..inputs.scenario import Poisson, TraceArrivals, Workload
from ..inputs.source import file_defect
from .arrivals import arrival_times_ms, arrivals_before_ms, no_arrivals
from .clock_ticks import clock_tick_ms, spread_over_ticks
from .problem_at import ProblemAt, without_position
from .streams import Stream, generator

Floats = NDArray[np.float64]


def recorded_trace(arrivals: TraceArrivals, base_dir: Path, problem: ProblemAt) -> TraceColumns:
    """The whole trace as its file has it. Raises InputError."""
    path = base_dir / arrivals.path
    if defect := file_defect(path, MAX_BYTES):
        raise InputError([problem("workload.arrivals.path", *defect)])
    return read_trace(path, arrivals.format, arrivals.columns)


def trace_rows(
    workload: Workload, arrivals: TraceArrivals, base_dir: Path, seed: int, replication: int, problem: ProblemAt
) -> tuple[Floats, TraceColumns]:
    """The arrival times of a replication in ms, and the rows of the trace that they belong to.

    The rows are those within `window_s` [from, to), in the trace's own seconds; of these the first `requests`, or those
    before `duration_s`, or all. They are chosen by their recorded times, whatever the seed; then bursts of a coarse
    clock are spread and the gaps divided by `scale`. With `rate`, Poisson arrivals take the place of the recorded ones.
    Time 0 is the window's start, or the first row without one. Raises InputError.
    """
    trace = recorded_trace(arrivals, base_dir, problem)
    if arrivals.rate is not None:
        return _at_rate(workload, arrivals, trace, arrivals.rate, seed, replication, problem)
    if trace.arrival_ms is None:
        what, rule = f"{arrivals.path!r} has lengths, but no arrivals", "a trace says when requests arrive"
        remedy = "add `rate: …` for Poisson arrivals, or name the column of arrivals"
        raise InputError([problem("workload.arrivals.path", what, rule, remedy)])
    start_ms, first, end = _window(arrivals, trace, problem)
    with np.errstate(over="ignore"):  # the caller refuses times that are not finite
        recorded_ms = (trace.arrival_ms[first:end] - start_ms) / arrivals.scale
    count = end - first
    if workload.duration_s is not None:
        count = int(np.searchsorted(recorded_ms, workload.duration_s * 1000))
        if not count:
            raise InputError([no_arrivals(workload.duration_s, replication, problem)])
    elif workload.requests is not None:
        count = workload.requests
        _check_rows(count, end - first, problem)
    tick_ms = clock_tick_ms(trace.arrival_ms) if arrivals.spread_bursts else None
    if tick_ms is not None:
        rng = generator(seed, replication, Stream.CLOCK_TICKS)
        spread_ms = spread_over_ticks(trace.arrival_ms, tick_ms, rng)
        recorded_ms = (spread_ms[first:end] - start_ms) / arrivals.scale
    return recorded_ms[:count], trace.rows(first, first + count)


def trace_warnings(workload: Workload, base_dir: Path, problem: ProblemAt = without_position) -> list[str]:
    """What the reader of a result has to know about the trace. Raises InputError as `trace_rows`."""
    arrivals = workload.arrivals
    if not isinstance(arrivals, TraceArrivals) or arrivals.rate is not None or not arrivals.spread_bursts:
        return []
    times = recorded_trace(arrivals, base_dir, problem).arrival_ms
    tick_ms = None if times is None else clock_tick_ms(times)
    if times is None or tick_ms is None:
        return []
    return [
        f"the clock of {arrivals.path} ticks every {tick_ms / 1000:.4g} s, {np.mean(np.diff(times) == 0):.0%} of its "
        "gaps are 0: each burst is spread over its tick by chance (`spread_bursts: false` keeps the recorded times)"
    ]


def _window(arrivals: TraceArrivals, trace: TraceColumns, problem: ProblemAt) -> tuple[float, int, int]:
    """Where the window starts in ms, its first row and the one after its last."""
    if arrivals.window_s is None:
        return 0.0, 0, len(trace)
    if trace.arrival_ms is None:
        what, rule = f"{arrivals.path!r} has no arrivals", "a window is cut by the trace's own times"
        raise InputError([problem("workload.arrivals.window_s", what, rule, "remove the window")])
    start_ms, end_ms = (second * 1000 for second in arrivals.window_s)
    first, end = np.searchsorted(trace.arrival_ms, [start_ms, end_ms]).tolist()
    if first >= end:
        what = f"no request of {arrivals.path!r} arrives in {arrivals.window_s}"
        rule = f"the window is [from, to) within the trace's {trace.arrival_ms[-1] / 1000:.0f} seconds"
        raise InputError([problem("workload.arrivals.window_s", what, rule, "move or widen the window")])
    return start_ms, first, end


def _at_rate(
    workload: Workload,
    arrivals: TraceArrivals,
    trace: TraceColumns,
    rate: float,
    seed: int,
    replication: int,
    problem: ProblemAt,
) -> tuple[Floats, TraceColumns]:
    """The rows of the window in their order, at Poisson arrivals."""
    _, first, end = _window(arrivals, trace, problem)
    poisson, rng = Poisson(kind="poisson", rate=rate), generator(seed, replication, Stream.ARRIVALS)
    if workload.duration_s is None:
        count = workload.requests or end - first
        _check_rows(count, end - first, problem)
        times = arrival_times_ms(poisson, count, rng)
    else:
        times = arrivals_before_ms(poisson, workload.duration_s * 1000, end - first, rng)
        _check_rows(len(times), end - first, problem, "workload.duration_s")
        if not len(times):
            raise InputError([no_arrivals(workload.duration_s, replication, problem)])
    return times, trace.rows(first, first + len(times))


def _check_rows(count: int, rows: int, problem: ProblemAt, field: str = "workload.requests") -> None:
    if count > rows:
        given = field == "workload.requests"
        what = f"{count if given else f'more than {rows}'} requests of a trace that has {rows} there"
        remedy = f"ask for at most {rows}" if given else "give a shorter time"
        raise InputError(
            [problem(field, what, "a trace is not repeated", f"{remedy}, or leave it out for all of them")]
        )
