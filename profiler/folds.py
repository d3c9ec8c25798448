"""How far the tables are from what was measured and not fitted: one fold for each way of being away from a point.

Errors are predicted / measured - 1, so positive is too slow. The floor is what a second measurement differs by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from sim.cost.context_lines import DecodeAttentionTable
from sim.cost.curve import CompiledCurve
from sim.cost.step_costs import StepShape
from sim.cost.table_costs import roofline_scale
from sim.inputs.calibration import Curve, DecodeAttention, TableCosts

from .measured import Times, first_times, row_ms
from .pricing import compiled, round_ms, round_terms
from .store import Points

Errors = list[tuple[str, float]]


class Fold(NamedTuple):
    """Errors of one kind in percent: absolute ones, and the signed bias. worst: the name of the largest."""

    cells: int
    median_percent: float
    p95_percent: float
    max_percent: float
    bias_percent: float
    worst: str


def fold_of(errors: Errors) -> Fold:
    """Summary of errors, which must not be empty."""
    signed = 100 * np.array([error for _, error in errors])
    size = np.abs(signed)
    worst = errors[int(size.argmax())][0]
    return Fold(
        len(errors),
        round(float(np.median(size)), 3),
        round(float(np.quantile(size, 0.95)), 3),
        round(float(size.max()), 3),
        round(float(signed.mean()), 3),
        worst,
    )


def folds(points: Points, costs: TableCosts, depth: int = 0) -> dict[str, Fold]:
    """Every fold that has cells. depth: of the target that `costs` is of; whole steps are measured at one."""
    times = Times(points, depth)
    found = {
        "repeatability": repeatability(points),
        "interior": list(interior(costs)),
        "line_out": list(line_out(costs)),
        "frontier": list(frontier(costs)),
        "additivity": list(additivity(times, costs)),
        "mixed": list(mixed(times, costs)),
        "skew": list(skew(times, costs)),
        "chain": list(chain(times, costs)),
    }
    return {name: fold_of(errors) for name, errors in found.items() if errors}


def repeatability(points: Points) -> Errors:
    """Second passes against first ones: nothing can be better than that."""
    first = first_times(points)
    found = []
    for row in points.ok():
        once = replace(row.point, repeat=0)
        if row.point.repeat == 1 and row.point.phase != "sentinel" and once in first:
            found.append((row.point.name, row_ms(row) / first[once] - 1))
    return found


def drift_percent(points: Points) -> float | None:
    """Range of the sentinels in percent of their median, None without two of them."""
    marks = [float(row.sample["median_ms"]) for row in points.ok("sentinel")]
    return 100 * (max(marks) - min(marks)) / float(np.median(marks)) if len(marks) > 1 else None


def interior(costs: TableCosts) -> Iterator[tuple[str, float]]:
    """Single cells left out, of the dense part and of attention, told by their neighbours."""
    for name, curve in (("full", costs.dense.full), ("eager", costs.dense.eager)):
        for i in range(1, len(curve.rows) - 1) if curve else ():
            assert curve is not None
            rest = Curve(rows=_without(curve.rows, i), ms=_without(curve.ms, i))
            predicted = CompiledCurve(rest).at(curve.rows[i])
            yield f"dense {name} {curve.rows[i]} rows", predicted / curve.ms[i] - 1
    table = costs.decode_attention
    if table is None:
        return
    cells = np.array(table.ms)
    for i, j in product(range(len(table.batch)), range(len(table.query))):
        for k in range(1, len(table.context) - 1):
            predicted = np.interp(table.context[k], _without(table.context, k), np.delete(cells[i, j], k))
            name = f"attention {table.batch[i]}q{table.query[j]}s{table.context[k]}"
            yield name, float(predicted / cells[i, j, k]) - 1


def line_out(costs: TableCosts) -> Iterator[tuple[str, float]]:
    """Whole rows of batch or query of the attention table left out."""
    table = costs.decode_attention
    if table is None:
        return
    cells = np.array(table.ms)
    for axis, name in ((0, "batch"), (1, "query")):
        values = (table.batch, table.query)[axis]
        for i in range(1, len(values) - 1):
            rest = {"batch": table.batch, "query": table.query, "context": table.context, name: _without(values, i)}
            predicted = _predicted(rest, np.delete(cells, i, axis), table)
            yield from _errors(f"attention {name} {values[i]}", np.take(predicted, i, axis), np.take(cells, i, axis))


def frontier(costs: TableCosts) -> Iterator[tuple[str, float]]:
    """The largest batch, context and rows left out and extrapolated, where two points at least are left."""
    table = costs.decode_attention
    if table is not None:
        cells = np.array(table.ms)
        for axis, name in ((0, "batch"), (2, "context")):
            values = (table.batch, table.query, table.context)[axis]
            if len(values) > 2:
                rest = {"batch": table.batch, "query": table.query, "context": table.context, name: values[:-1]}
                predicted = _predicted(rest, np.delete(cells, -1, axis), table)
                label = f"attention {name} {values[-1]}"
                yield from _errors(label, np.take(predicted, -1, axis), np.take(cells, -1, axis))
    for name, curve in (("full", costs.dense.full), ("eager", costs.dense.eager)):
        if curve is not None and len(curve.rows) > 2 and costs.roofline is not None:
            scale = roofline_scale(costs.roofline, curve.rows[-1], curve.rows[-2])
            yield f"dense {name} {curve.rows[-1]} rows", curve.ms[-2] * scale / curve.ms[-1] - 1


def additivity(times: Times, costs: TableCosts) -> Iterator[tuple[str, float]]:
    """Whole rounds against the sum of their terms, in series."""
    for point, ms in times.of("round"):
        if times.at_depth(point.layers):
            batch, query, context = point.group
            predicted = round_ms(compiled(costs, query - 1), batch, query - 1, batch * context)
            yield point.name, predicted / ms - 1


def mixed(times: Times, costs: TableCosts) -> Iterator[tuple[str, float]]:
    """Target passes over prompt chunks beside decodes."""
    for point, ms in times.of("mixed"):
        if not times.at_depth(point.layers):
            continue
        decodes = [group for group in point.groups if not group.is_chunk]
        chunks = [(group.query, group.context) for group in point.groups if group.is_chunk for _ in range(group.count)]
        requests = sum(group.count for group in decodes)
        drafts = sum(group.rows for group in decodes) - requests
        context = sum(group.count * group.context for group in decodes)
        ends = sum(query + start for query, start in chunks)
        terms = compiled(costs, 1).terms(StepShape(requests, drafts, context, chunks, len(chunks), ends), 0)
        yield point.name, (terms.target + terms.kv_update) / ms - 1


def skew(times: Times, costs: TableCosts) -> Iterator[tuple[str, float]]:
    """Attention over unlike contexts against their mean."""
    if costs.decode_attention is None:
        return
    table = DecodeAttentionTable(costs.decode_attention)
    for point, ms in times.of("skew"):
        if times.at_depth(point.layers):
            count = sum(group.count for group in point.groups)
            mean = sum(group.count * group.context for group in point.groups) / count
            yield point.name, table.line(count, point.rows).at(mean) / ms - 1


def chain(times: Times, costs: TableCosts) -> Iterator[tuple[str, float]]:
    """Whole chains of drafts against a first pass and narrow ones."""
    for point, ms in times.of("chain"):
        batch, query, context = point.group
        terms = round_terms(compiled(costs, query - 1), batch, query - 1, batch * context)
        yield point.name, terms.draft / ms - 1


def _predicted(
    rest: Mapping[str, Sequence[int]], cells: np.ndarray[Any, Any], table: DecodeAttention
) -> np.ndarray[Any, Any]:
    """Every cell of `table` as a smaller table tells it."""
    small = DecodeAttention.model_validate({**rest, "ms": cells.tolist()})
    attention = DecodeAttentionTable(small)
    return np.array(
        [
            [[attention.line(batch, batch * query).at(context) for context in table.context] for query in table.query]
            for batch in table.batch
        ]
    )


def _errors(name: str, predicted: np.ndarray[Any, Any], measured: np.ndarray[Any, Any]) -> Iterator[tuple[str, float]]:
    for error in (predicted / measured - 1).ravel():
        yield name, float(error)


def _without(values: Sequence[Any], place: int) -> list[Any]:
    return [*values[:place], *values[place + 1 :]]
