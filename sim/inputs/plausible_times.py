"""Times that no GPU can show: a table in seconds or microseconds instead of milliseconds is refused, not simulated."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .calibration import (
    AffineCosts,
    ChainDraft,
    DecodeAttention,
    MemoryBudget,
    ParallelDraft,
    Roofline,
    RoundCosts,
    TableCosts,
)
from .source import Finding

FASTEST_GB_PER_S = 8000.0  # memory of one B200, the fastest of the GPUs that serve today
BANDWIDTH_MARGIN = 1.5  # caches keep a part of small weights
FLOP_MARGIN = 1.1
MOST_TIMES_ROOFLINE = 300.0  # launches dominate small models; a wrong unit is 1000
LEAST_MS, MOST_MS = 1e-3, 1e5
SLOW_MS, SLOW_FACTOR = 50.0, 1000.0  # a pass may take that long beside, and that much longer than, reading its weights
AFFINE_ROWS = 1024
MOST_TIMES_DENSE = 30.0  # of any other term beside the dense pass of as many rows
MOST_HOST_MS, MOST_HOST_TIMES_DENSE = 1000.0, 100.0
ATTENTION_LAUNCHES_MS = 5.0  # a kernel a layer, however little it reads
ROUNDED_MS = 0.01  # a short time may be rounded down
MOST_AFFINE = {"target_per_token_us": 1e4, "target_per_kv_token_ns": 1e6, "host_ms": MOST_HOST_MS}
LEAST_WEIGHT_BYTES, MOST_WEIGHT_BYTES = 1e7, 1e14
LEAST_KV_BYTES, MOST_KV_BYTES = 1e2, 1e8
UNITS = "check the unit: off by 1000?"


class Pass(NamedTuple):
    """A time as the file has it: where, over how many rows, how long."""

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
    if isinstance(costs, AffineCosts):
        yield from _affine(costs)
    if isinstance(costs, TableCosts):
        yield from _whole_steps(costs)
        yield from _against_dense(costs)
        if costs.decode_attention is not None and memory is not None:
            yield from _against_kv(costs.decode_attention, memory.kv_bytes_per_token, roofline, on_cpu)


def size_findings(memory: MemoryBudget | None, roofline: Roofline | None) -> Iterator[Finding]:
    """Weights and KV caches that no model has."""
    weights = (LEAST_WEIGHT_BYTES, MOST_WEIGHT_BYTES)
    sizes = []
    if memory is not None:
        sizes.append(("memory.target_weight_bytes", memory.target_weight_bytes, *weights))
        sizes.append(("memory.kv_bytes_per_token", memory.kv_bytes_per_token, LEAST_KV_BYTES, MOST_KV_BYTES))
    if roofline is not None:
        sizes.append(("costs.roofline.weight_bytes", roofline.weight_bytes, *weights))
    for path, size, least, most in sizes:
        if not least <= size <= most:
            yield Finding(path, f"{size:g} bytes", f"models have {least:g} to {most:g}", "check the unit: bytes")


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


def _affine(costs: AffineCosts) -> Iterator[Finding]:
    for name, most in MOST_AFFINE.items():
        value = getattr(costs, name)
        if value > most:
            yield Finding(f"costs.{name}", f"{value:g}", f"at most {most:g}", UNITS)
    most_ms = MOST_TIMES_DENSE * costs.target_fixed_ms
    if 0 < most_ms < costs.draft_fixed_ms:
        what = f"{costs.draft_fixed_ms:g} ms for a draft pass"
        rule = f"at most {MOST_TIMES_DENSE:g} times target_fixed_ms of {costs.target_fixed_ms:g}"
        yield Finding("costs.draft_fixed_ms", what, rule, UNITS)


def _against_dense(costs: TableCosts) -> Iterator[Finding]:
    """Other terms against the dense pass at the nearest measured rows. One that is too short may be just fast."""
    dense: dict[int, float] = {}
    for passes in _columns(costs):
        for one in passes:
            dense[one.rows] = min(one.ms, dense.get(one.rows, one.ms))
    rows = sorted(dense)
    for name, passes in _terms(costs):
        times = MOST_HOST_TIMES_DENSE if name == "host" else MOST_TIMES_DENSE
        for one in passes:
            place = bisect_left(rows, one.rows)
            near = min(rows[max(0, place - 1) : place + 1], key=lambda row: abs(row - one.rows))
            most = min(times * dense[near], MOST_HOST_MS if name == "host" else float("inf"))
            if one.ms > most:
                what = f"{one.ms:g} ms for {one.rows} rows, where the dense pass takes {dense[near]:g} ms"
                yield Finding(one.path, what, f"at most {most:g} ms", UNITS)
                break


def _terms(costs: TableCosts) -> Iterator[tuple[str, list[Pass]]]:
    """What is measured over rows or batches; narrow draft passes at their shortest context, which adds the least."""
    curves = {"head": costs.head, "kv_update": costs.kv_update, "host": costs.host}
    if isinstance(costs.draft, ChainDraft):
        curves["draft.first"] = costs.draft.first
        narrow = costs.draft.narrow
        path = "costs.draft.narrow.ms"
        passes = [Pass(f"{path}.{i}.0", batch, narrow.ms[i][0]) for i, batch in enumerate(narrow.batch)]
        yield "draft.narrow", passes
    elif isinstance(costs.draft, ParallelDraft):
        curves["draft.one_pass"] = costs.draft.one_pass
    for name, curve in curves.items():
        if curve is not None:
            points = enumerate(zip(curve.rows, curve.ms, strict=True))
            yield name, [Pass(f"costs.{name}.ms.{i}", *point) for i, point in points]
    if costs.sampling is not None:
        yield (
            "sampling",
            [
                Pass(f"costs.sampling.ms.{i}.{j}", batch * query, costs.sampling.ms[i][j])
                for i, batch in enumerate(costs.sampling.batch)
                for j, query in enumerate(costs.sampling.query)
            ],
        )


def _against_kv(
    attention: DecodeAttention, kv_bytes: float, roofline: Roofline | None, on_cpu: bool
) -> Iterator[Finding]:
    """Attention reads every key and value once: not faster than memory, and not for ever where there are most."""
    gb_per_s = roofline.bandwidth_gb_per_s if roofline else FASTEST_GB_PER_S
    last_batch, last_context = len(attention.batch) - 1, len(attention.context) - 1
    for i, batch in enumerate(attention.batch):
        for j, times in enumerate(attention.ms[i]):
            for place, (context, ms) in enumerate(zip(attention.context, times, strict=True)):
                read_ms = 1e-6 * batch * context * kv_bytes / gb_per_s
                path = f"costs.decode_attention.ms.{i}.{j}.{place}"
                what = f"{ms:g} ms for {batch} requests of {context} tokens, {kv_bytes:g} bytes each"
                if (ms + ROUNDED_MS) * BANDWIDTH_MARGIN < read_ms:
                    rule = f"reading them takes {read_ms:.3g} ms at {gb_per_s:g} GB/s"
                    yield Finding(path, what, rule, UNITS)
                    return
                most_ms = ATTENTION_LAUNCHES_MS + MOST_TIMES_ROOFLINE * read_ms
                is_largest = (i, j, place) == (last_batch, 0, last_context)
                if is_largest and ms > most_ms and not (on_cpu and roofline is None):
                    rule = f"at most {most_ms:.3g} ms, {MOST_TIMES_ROOFLINE:g} times as long as reading them"
                    yield Finding(path, what, rule, UNITS)
                    return
