"""Capacity as figures: the highest load of each arm, latency against load and limit, and cost against latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cost_figure import COSTS
from .figure import Figure, Json, View, axis, category_axis, choices, error_bars, usd_axis, view_key
from .result_arms import LINES, colour, value_of

HIGHEST_NOTE = "The highest load within the SLO; the bar's interval holds the loads that may or may not be."
LOAD_NOTE = (
    "Every load that was simulated, with 95 % intervals. Filled: within every limit; open: not. Dotted: the limit."
)
COST_NOTE = (
    "One point for each load of the table: more load is cheaper and slower. Filled: within every limit; open: not."
)


def highest_figure(document: dict[str, Any]) -> Figure | None:
    """The highest load of each arm; None where none was found."""
    arms = document["arms"]
    values = [arm["highest_load"] for arm in arms.values()]
    if not any(values):
        return None
    style = {
        "type": "bar",
        "orientation": "h",
        "width": 0.5,
        "marker": {"color": [colour(place) for place in range(len(arms))]},
        "hovertemplate": "%{x:.3~g}<extra></extra>",
    }
    bars = error_bars(values, [arm["interval"] for arm in arms.values()])
    layout = {
        "height": 110 + 44 * len(arms),
        "xaxis": axis(f"highest load, {document['load']['unit']}", rangemode="tozero"),
        "yaxis": category_axis(list(arms), autorange="reversed"),
    }
    trace: Json = {"x": values, "y": list(range(len(arms))), "error_x": bars}
    return Figure(
        "highest", "Highest load within the SLO by arm", [style], layout, {"": View([trace])}, (), HIGHEST_NOTE
    )


def load_figure(document: dict[str, Any]) -> Figure:
    """A limited latency against the load. Its control is `limit`."""
    arms = document["arms"]
    limits = document["slo"]["limits"]
    views = {}
    for index, limit in enumerate(limits):
        metric = limit["metric"]
        traces = [_latencies(arm["loads"], metric) for arm in arms.values()]
        loads = [x for trace in traces if trace for x in trace["x"]]
        line = {"x": [min(loads), max(loads)], "y": [limit["limit_ms"]] * 2} if loads else None
        views[view_key((index,))] = View(
            [*traces, line], {"yaxis": axis(f"{limit_label(limit)}, ms", type="log", dtick="D2")}
        )
    style = [_style(name, place) for place, name in enumerate(arms)]
    style.append(
        {"type": "scatter", "mode": "lines", "name": "limit", "line": {"color": "@ink", "width": 1.5, "dash": "dot"}}
    )
    layout = {"height": 420, "xaxis": axis(f"load, {document['load']['unit']}", rangemode="tozero"), "yaxis": {}}
    return Figure("load", "Latency against load, with its limit", style, layout, views, ("limit",), LOAD_NOTE)


def cost_slo_figure(document: dict[str, Any]) -> Figure | None:
    """Cost against latency at the loads of the table. Controls: `limit` and `cost`. None without a price."""
    known = costs_known(document)
    if not known:
        return None
    arms, limits = document["arms"], document["slo"]["limits"]
    table = set(document["table_loads"])
    views = {}
    for choice in choices(len(limits), len(known)):
        limit, (metric, label) = limits[choice[0]], known[choice[1]]
        traces = []
        for arm in arms.values():
            rows = [row for row in arm["loads"] if row["load"] in table]
            trace = _latencies(rows, limit["metric"])
            costs = [value_of(row, metric) for row in rows if row["slo"][limit["metric"]]["value"] is not None]
            traces.append(None if trace is None else {**trace, "x": costs})
        bounds: list[Json] = [{**_limit_line(), "y0": limit["limit_ms"], "y1": limit["limit_ms"]}]
        layout = {
            "xaxis": usd_axis(f"$ {label}"),
            "yaxis": axis(f"{limit_label(limit)}, ms", type="log", dtick="D2"),
            "shapes": bounds,
        }
        views[view_key(choice)] = View(traces, layout, usd_axis="x")
    style = [_style(name, place) for place, name in enumerate(arms)]
    frame = {"height": 420, "xaxis": {}, "yaxis": {}, "showlegend": True}
    return Figure("cost-slo", "Cost against latency by arm", style, frame, views, ("limit", "cost"), COST_NOTE)


def costs_known(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The costs that any load has."""
    rows = [row for arm in document["arms"].values() for row in arm["loads"]]
    return [cost for cost in COSTS if any(value_of(row, cost[0]) is not None for row in rows)]


def limit_label(limit: dict[str, Any]) -> str:
    """`TPOT p95` of a limit on p95_tpot_ms."""
    statistic, _, rest = limit["metric"].removesuffix("_ms").partition("_")
    name = {"e2el": "E2E latency"}.get(rest, rest.upper())
    return f"{name} {statistic}"


def _latencies(rows: Sequence[dict[str, Any]], metric: str) -> Json | None:
    known = [row for row in rows if row["slo"][metric]["value"] is not None]
    if not known:
        return None
    values = [row["slo"][metric]["value"] for row in known]
    bounds = [_bounds(row["slo"][metric]) for row in known]
    return {
        "x": [row["load"] for row in known],
        "y": values,
        "error_y": error_bars(values, bounds),
        "marker": {"symbol": ["circle" if row["meets"] else "circle-open" for row in known]},
    }


def _bounds(one: dict[str, Any]) -> tuple[float, float] | None:
    """The interval of a latency; its lower end stays above 0, where a logarithmic axis ends."""
    return None if one["low"] is None else (max(one["low"], one["value"] / 100), one["high"])


def _limit_line() -> Json:
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "line": {"color": "@ink", "width": 1.5, "dash": "dot"}}


def _style(name: str, place: int) -> Json:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "line": {"color": colour(place), "width": 2, "dash": LINES[place % len(LINES)]},
        "marker": {"color": colour(place), "size": 9, "line": {"color": colour(place), "width": 1.5}},
        "error_y": {"thickness": 1, "width": 3},
        "hovertemplate": "%{x:.3~g}: %{y:.4~g} ms<extra>%{fullData.name}</extra>",
    }
