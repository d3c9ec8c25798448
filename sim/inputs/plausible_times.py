"""Times that no GPU can show: a table in seconds or microseconds instead of milliseconds is refused, not simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .calibration import AffineCosts, MemoryBudget, Roofline, RoundCosts, TableCosts
from .source import Finding

FASTEST_GB_PER_S = 8000.0  # memory of one B200, the fastest of the GPUs that serve today
BANDWIDTH_MARGIN = 1.5  # caches keep a part of small weights
FLOP_MARGIN = 1.1
MOST_TIMES_ROOFLINE = 300.0  # launches dominate small models; a wrong unit is 1000
LEAST_MS, MOST_MS = 1e-3, 1e5
SLOW_MS, SLOW_FACTOR = 50.0, 1000.0  # a pass may take that long beside, and that much longer than, reading its weights
AFFINE_ROWS = 1024
UNITS = "check the unit: off by 1000?"


class Pass(NamedTuple):
    """A target pass as the file has it: where, over how many rows, how long."""

    path: str
    rows: int
    ms: float


def time_findings(
    costs: AffineCosts | TableCosts | RoundCosts, memory: MemoryBudget | None, data: Mapping[str, Any]
) -> Iterator[Finding]:
    """At most one finding a column: one pass is enough to show that a unit is wrong."""
    hardware = data.get("hardware")
    on_cpu = isinstance(hardware, dict) and "cpu" in str(hardware.get("gpu")).lower()
    roofline = costs.roofline if isinstance(costs, TableCosts) else None
    weight_bytes = memory.target_weight_bytes if memory else None
    for passes in _columns(costs):
        found = _against_peak(passes, roofline) if roofline else None
        found = found or _against_weights(passes, weight_bytes, on_cpu)
        if found:
            yield found
    if isinstance(costs, TableCosts):
        yield from _whole_steps(costs)


def _columns(costs: AffineCosts | TableCosts | RoundCosts) -> Iterator[list[Pass]]:
    """Target passes by column, fewest rows first; a round holds the pass and its drafting."""
    if isinstance(costs, AffineCosts):
        fixed = costs.target_fixed_ms + costs.sampling_fixed_ms + costs.host_ms
        row_ms = 1e-3 * (costs.target_per_token_us + costs.kv_update_per_token_us)
        yield [Pass("costs", rows, fixed + rows * row_ms) for rows in (1, AFFINE_ROWS)]
    elif isinstance(costs, RoundCosts):
        yield [
            Pass(f"costs.ms.{row}.{column}", batch * (1 + drafts), ms)
            for row, (batch, cells) in enumerate(zip(costs.batch, costs.ms, strict=True))
            for column, (drafts, ms) in enumerate(zip(costs.drafts, cells, strict=True))
            if ms is not None
        ]
    else:
        for mode in ("full", "piecewise", "eager"):
            curve = getattr(costs.dense, mode)
            if curve is not None:
                path = f"costs.dense.{mode}.ms"
                yield [Pass(f"{path}.{i}", *point) for i, point in enumerate(zip(curve.rows, curve.ms, strict=True))]


def _against_peak(passes: Sequence[Pass], roofline: Roofline) -> Finding | None:
    """Against the GPU that the file itself names. Experts of a model may read less than all weights at few rows."""
    for one in passes:
        flop_ms = 1e-9 * one.rows * roofline.flops_per_row / roofline.tflop_per_s
        if one.ms * FLOP_MARGIN < flop_ms:
            what = f"{one.ms:g} ms for {one.rows} rows, which take {flop_ms:.3g} ms at {roofline.tflop_per_s:g} TFLOP/s"
            return Finding(one.path, what, "no pass is faster than the GPU's peak", UNITS)
    read_ms = 1e-6 * roofline.weight_bytes / roofline.bandwidth_gb_per_s
    slowest = max(passes, key=lambda one: one.ms)
    if slowest.ms * BANDWIDTH_MARGIN < read_ms:
        what = f"{slowest.ms:g} ms, but reading the weights takes {read_ms:.3g} ms"
        rule = f"at {roofline.bandwidth_gb_per_s:g} GB/s no pass is faster"
        return Finding(slowest.path, what, rule, UNITS)
    peak_ms = [max(read_ms, 1e-9 * one.rows * roofline.flops_per_row / roofline.tflop_per_s) for one in passes]
    if all(one.ms > MOST_TIMES_ROOFLINE * peak for one, peak in zip(passes, peak_ms, strict=True)):
        what = f"{passes[0].ms:g} ms for {passes[0].rows} rows, whose roofline is {peak_ms[0]:.3g} ms"
        rule = f"not every pass takes more than {MOST_TIMES_ROOFLINE:g} times as long"
        return Finding(passes[0].path, what, rule, UNITS)
    return None


def _against_weights(passes: Sequence[Pass], weight_bytes: float | None, on_cpu: bool) -> Finding | None:
    """Against any GPU: every pass takes time, the slowest reads all weights, the fastest does not last for ever."""
    slowest, fastest = max(passes, key=lambda one: one.ms), min(passes, key=lambda one: one.ms)
    if fastest.ms < LEAST_MS:
        return Finding(fastest.path, f"{fastest.ms:g} ms for a target pass", f"at least {LEAST_MS:g} ms", UNITS)
    if fastest.ms > MOST_MS:
        return Finding(fastest.path, f"{fastest.ms:g} ms for a target pass", f"at most {MOST_MS:g} ms", UNITS)
    if weight_bytes is None:
        return None
    read_ms = 1e-6 * weight_bytes / FASTEST_GB_PER_S
    what = f"of {weight_bytes:.3g} bytes of weights"
    if slowest.ms * BANDWIDTH_MARGIN < read_ms:
        rule = f"at {FASTEST_GB_PER_S:g} GB/s reading them takes {read_ms:.3g} ms"
        return Finding(slowest.path, f"{slowest.ms:g} ms for a target pass {what}", rule, UNITS)
    most_ms = SLOW_MS + SLOW_FACTOR * read_ms
    if fastest.ms > most_ms and not on_cpu:
        return Finding(
            fastest.path, f"{fastest.ms:g} ms for a target pass {what}", f"at most {most_ms:.3g} ms on a GPU", UNITS
        )
    return None


def _whole_steps(costs: TableCosts) -> Iterator[Finding]:
    """A whole step holds a dense pass: hundred times faster than all or slower than all of them is another unit."""
    every = [one.ms for passes in _columns(costs) for one in passes]
    low, high = min(every) / 100, 100 * max(every)
    for place, step in enumerate(costs.whole_steps):
        if not low <= step.ms <= high:
            what, rule = f"{step.ms:g} ms", f"the dense passes take {min(every):g} to {max(every):g} ms"
            yield Finding(f"costs.whole_steps.{place}.ms", what, rule, UNITS)
