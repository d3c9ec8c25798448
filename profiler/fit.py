"""From points to the tables of a calibration, which the simulator reads.

The dense part is a whole pass through the layers minus attention and KV update, as the simulator itself prices those:
so the sum of terms is the measured pass again. Measured points are kept as they are, never smoothed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.cost.context_lines import DecodeAttentionTable
from sim.cost.curve import CompiledCurve
from sim.cost.prefill_attention import PrefillAttentionTable
from sim.inputs.calibration import Curve, DecodeAttention, PrefillAttention, TableCosts

from .errors import ProfileError
from .grids import Cell, complete_axes, nested
from .measured import Times
from .point import Group, Point
from .setup import CAPTURE_LIMIT, CAPTURE_SIZES
from .store import Points

LEAST_SHARE = 0.02  # of a pass that is left to the dense part when attention and KV update are taken off


def fit_costs(points: Points, depth: int = 0) -> TableCosts:
    """The tables of a results folder; depth: layers of the target, 0 for all. Raises ProfileError."""
    times = Times(points, depth)
    attention, prefill, kv_update = _attention(times), _prefill(times), _rows_curve(times.need("kv_update"))
    dense = _dense(times, attention, prefill, kv_update)
    document: dict[str, Any] = {
        "form": "table",
        "dense": dense,
        "head": _rows_curve(times.need("head")),
        "decode_attention": attention,
        "prefill_attention": prefill,
        "sampling": _grid(times.need("sampling"), ("batch", "query")),
        "kv_update": kv_update,
        "host": _curve({point.group.count: ms for point, ms in times.need("host").items()}),
        "roofline": _roofline(times, dense),
    }
    if points.setup.draft is not None:
        narrow = _grid(times.need("draft_narrow"), ("batch", "context"))
        first = _rows_curve(times.need("draft_first"))
        document["draft"] = {"kind": "chain", "first": first, "narrow": narrow}
    if "full" in document["dense"]:
        document["graphs"] = {"capture_sizes": list(CAPTURE_SIZES), "limit": CAPTURE_LIMIT}
    document["whole_steps"] = _whole_steps(times)
    return TableCosts.model_validate(document)


def _attention(times: Times) -> dict[str, Any]:
    return _grid(times.need("attention"), ("batch", "query", "context"))


def _prefill(times: Times) -> dict[str, Any]:
    cells: dict[Cell, float] = {
        (point.group.query, point.group.context): ms for point, ms in times.need("prefill").items()
    }
    chunk, start = complete_axes(cells)
    return {"chunk": chunk, "start": start, "ms": nested(cells, [chunk, start])}


def _grid(found: Mapping[Point, float], names: tuple[str, ...]) -> dict[str, Any]:
    places = [("batch", "query", "context").index(name) for name in names]
    cells: dict[Cell, float] = {tuple(point.group[i] for i in places): ms for point, ms in found.items()}
    axes = complete_axes(cells)
    return dict(zip(names, axes, strict=True)) | {"ms": nested(cells, axes)}


def _rows_curve(found: Mapping[Point, float]) -> dict[str, Any]:
    return _curve({point.rows: ms for point, ms in found.items()})


def _curve(cells: Mapping[int, float]) -> dict[str, Any]:
    rows = sorted(cells)
    return {"rows": rows, "ms": [round(cells[one], 6) for one in rows]}


def _dense(
    times: Times, attention: dict[str, Any], prefill: dict[str, Any], kv_update: dict[str, Any]
) -> dict[str, Any]:
    """Columns by mode. A pass so short that attention is nearly all of it says nothing: it raises ProfileError."""
    decode_table = DecodeAttentionTable(DecodeAttention.model_validate(attention))
    prefill_table = PrefillAttentionTable(PrefillAttention.model_validate(prefill))
    kv_curve = CompiledCurve(Curve.model_validate(kv_update))
    columns: dict[str, dict[int, float]] = {}
    for point, ms in times.need("body").items():
        around = attention_ms(point.group, decode_table, prefill_table) + kv_curve.at(point.rows)
        if ms - around < LEAST_SHARE * ms:
            what = f"{point.name} took {ms:.4g} ms, attention and KV update alone {around:.4g} ms"
            rule = "the dense part is what is left"
            raise ProfileError("specsim profile fit", "body", what, rule, "measure again on a quiet machine")
        columns.setdefault(_column(times, point), {})[point.rows] = ms - around
    return {mode: _curve(cells) for mode, cells in columns.items()}


def attention_ms(group: Group, decode: DecodeAttentionTable, prefill: PrefillAttentionTable) -> float:
    """Attention of one group as the simulator prices it."""
    if group.is_chunk:
        return group.count * prefill.of(group.query, group.context)
    return decode.line(group.count, group.rows).at(group.context)


def _column(times: Times, point: Point) -> str:
    """Passes of a device without graphs are eager ones."""
    return "full" if point.mode == "graph" else "eager"


def _roofline(times: Times, dense: dict[str, Any]) -> dict[str, float]:
    """Ceilings as measured: the copy's bandwidth, and the product's rate, or the dense part's where that is higher."""
    setup = times.points.setup
    dtype, target = setup.dtype, setup.target
    ceilings = {row.point.phase: row.extra for row in times.points.ok() if row.point.phase in ("copy", "product")}
    if len(ceilings) < 2:
        rule = "times beyond the measured rows are scaled by what the device can do"
        raise ProfileError("specsim profile fit", "ceilings", "were not measured", rule, "run the plan to its end")
    flops = target.at_depth(times.layers).layers_flops_per_token()
    columns = [zip(column["rows"], column["ms"], strict=True) for column in dense.values()]
    reached = max(1e-9 * rows * flops / ms for column in columns for rows, ms in column)
    return {
        "weight_bytes": target.at_depth(times.layers).weight_bytes(dtype),
        "flops_per_row": float(flops),
        "bandwidth_gb_per_s": round(float(ceilings["copy"]["gb_per_s"]), 3),
        "tflop_per_s": float(f"{max(reached, float(ceilings['product']['tflop_per_s'])):.5g}"),
    }


def _whole_steps(times: Times) -> list[dict[str, Any]]:
    """Rounds as they were measured; of a target at two depths there are none of the whole model."""
    if times.depths:
        return []
    return [
        {"batch": point.group.count, "query": point.group.query, "context": point.group.context, "ms": round(ms, 6)}
        for point, ms in sorted(times.of("round"), key=lambda found: found[0].group)
    ]
