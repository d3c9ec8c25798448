"""Tuning as figures: speed-up over draft length and concurrency, draft tokens at each load, break-even acceptance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..number_text import number_text
from .effect_figure import SYMBOLS, break_even, positive_interval, ratio_axis
from .figure import Figure, Json, View, axis, category_axis, error_bars, view_key
from .gain_map import map_style
from .result_arms import COLOURS, LINES

GAIN_NOTE = (
    "Output throughput with each draft length over none, with 95 % intervals; the dashed line is break-even. "
    "● better, ✕ worse, ○ no difference shown."
)
MAP_NOTE = "The same as a map; ≈ no difference shown, ★ best at its load. Blue gains, orange loses."
MARGINAL_NOTE = (
    "Milliseconds that a draft token adds to a round and saves at this load. Below: how often it is committed."
)
ALPHA_NOTE = (
    "The chance of each draft token to be accepted at which a draft length is as fast as none: below it, it loses."
)
OTHERS = (("schedule", "schedule"), ("goodput", "goodput policy"), ("reached_0", "schedule at 0"))


def tune_gain_figure(document: dict[str, Any]) -> Figure:
    """Speed-up against concurrency, a line for each draft length and policy. Its control is `scope`."""
    lengths = document["draft_lengths"][1:]
    views = {}
    for index, scope in enumerate(document["scopes"]):
        loads = scope["by_concurrency"]
        traces: list[Json | None] = [
            _gains(loads, [load["fixed"][k]["ratio_to_off"] for load in loads]) for k in lengths
        ]
        for key, _ in OTHERS:
            known = [load for load in loads if load.get(key)]
            traces.append(_gains(known, [load[key]["ratio_to_off"] for load in known]) if known else None)
        upwards = ratio_axis("times the throughput of no speculation", traces, "y")
        views[view_key((index,))] = View(traces, {"yaxis": upwards})
    style = [_line(f"k = {k}", place) for place, k in enumerate(lengths)]
    style += [_line(label, place, "@ink" if place == 0 else "@baseline", 3) for place, (_, label) in enumerate(OTHERS)]
    layout = {
        "height": 440,
        "xaxis": load_axis(document["concurrencies"]),
        "yaxis": {},
        "shapes": [break_even("y")],
        "showlegend": True,
    }
    return Figure(
        "gain", "Speed-up over concurrency with the break-even line", style, layout, views, ("scope",), GAIN_NOTE
    )


def tune_map_figure(document: dict[str, Any]) -> Figure:
    """The same over draft length and concurrency. Its control is `scope`."""
    lengths = document["draft_lengths"]
    views = {}
    for index, scope in enumerate(document["scopes"]):
        loads = scope["by_concurrency"]
        rows = [[load["fixed"][k]["ratio_to_off"] for load in loads] for k in lengths]
        logs = [[math.log2(one["ratio"]) if one["ratio"] else None for one in row] for row in rows]
        best = [load["best"]["num_speculative_tokens"] for load in loads]
        text = [
            [_map_text(one, best[place] == k) for place, one in enumerate(row)]
            for k, row in zip(lengths, rows, strict=True)
        ]
        reach = max([0.2, *(abs(value) for row in logs for value in row if value is not None)])
        trace: Json = {"z": logs, "text": text, "zmin": -reach, "zmax": reach}
        places = {"x": list(range(len(loads))), "y": list(range(len(lengths)))}
        views[view_key((index,))] = View([{**trace, **places}])
    layout = {
        "height": 110 + 34 * len(lengths),
        "xaxis": category_axis([str(one) for one in document["concurrencies"]], title={"text": "concurrency"}),
        "yaxis": category_axis([str(k) for k in lengths], title={"text": "draft length k"}),
    }
    summary = "Speed-up over draft length and concurrency"
    return Figure("map", summary, [map_style()], layout, views, ("scope",), MAP_NOTE, value_label="times better")


def tune_marginal_figure(document: dict[str, Any]) -> Figure | None:
    """Each draft token at a load. Controls: `scope` and `load`. None where nothing was drafted."""
    views = {}
    for index, scope in enumerate(document["scopes"]):
        for place, load in enumerate(scope["by_concurrency"]):
            rows = load["marginal"]
            if rows:
                positions = [row["position"] for row in rows]
                columns = ("adds_ms", "saves_ms", "p_committed")
                traces = [{"x": positions, "y": [row[key] for row in rows]} for key in columns]
                views[view_key((index, place))] = View(traces)
    if not views:
        return None
    style: list[Json] = [
        {
            "type": "bar",
            "name": "adds",
            "marker": {
                "color": "@costs",
                "pattern": {"shape": "/", "fillmode": "overlay", "fgcolor": "@paper", "fgopacity": 0.6},
            },
        },
        {"type": "bar", "name": "saves", "marker": {"color": "@pays"}},
        {"type": "scatter", "mode": "lines+markers", "name": "P(committed)", "yaxis": "y2", "line": {"color": "@c2"}},
    ]
    layout = {
        "height": 480,
        "barmode": "group",
        "xaxis": axis("draft token", dtick=1, anchor="y2"),
        "yaxis": axis("ms per round", domain=[0.42, 1], rangemode="tozero"),
        "yaxis2": axis("probability", domain=[0, 0.34], range=[0, 1.03]),
    }
    summary = "What each draft token adds and saves at a load"
    return Figure("marginal", summary, style, layout, views, ("scope", "load"), MARGINAL_NOTE)


def alpha_figure(document: dict[str, Any]) -> Figure | None:
    """Break-even acceptance against concurrency. Its control is `scope`. None where no length has one."""
    lengths = document["draft_lengths"][1:]
    views = {}
    for index, scope in enumerate(document["scopes"]):
        loads = scope["by_concurrency"]
        traces: list[Json] = [
            {
                "x": [load["concurrency"] for load in loads],
                "y": [load["fixed"][k]["break_even_alpha"] for load in loads],
            }
            for k in lengths
        ]
        if any(value is not None for trace in traces for value in trace["y"]):
            views[view_key((index,))] = View(traces)
    if not views:
        return None
    layout = {
        "height": 380,
        "xaxis": load_axis(document["concurrencies"]),
        "yaxis": axis("acceptance to break even", range=[0, 1.02]),
        "showlegend": True,
    }
    style = [_line(f"k = {k}", place) for place, k in enumerate(lengths)]
    return Figure("alpha", "Break-even acceptance against concurrency", style, layout, views, ("scope",), ALPHA_NOTE)


def load_axis(values: Sequence[float]) -> Json:
    """Concurrency by ratio."""
    return axis("concurrency", type="log", tickvals=list(values), ticktext=[f"{value:g}" for value in values])


def _gains(loads: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> Json:
    ratios = [row["ratio"] for row in rows]
    return {
        "x": [load["concurrency"] for load in loads],
        "y": ratios,
        "error_y": error_bars(ratios, [positive_interval(row) for row in rows]),
        "marker": {"symbol": [SYMBOLS.get(row["verdict"], "diamond-open") for row in rows]},
    }


def _map_text(one: dict[str, Any], best: bool) -> str:
    if one["ratio"] is None:
        return ""
    mark = " ≈" if one["verdict"] == "no_difference_shown" else ""
    return f"{number_text(one['ratio'])}x{mark}{' ★' if best else ''}"


def _line(name: str, number: int, own_colour: str | None = None, width: float = 2) -> Json:
    colour = own_colour or f"@c{number % COLOURS}"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "line": {"color": colour, "width": width, "dash": LINES[number % len(LINES)]},
        "marker": {"color": colour, "size": 8, "line": {"color": colour, "width": 1.5}},
        "error_y": {"thickness": 1, "width": 3},
        "hovertemplate": "%{y:.3~g}<extra>%{fullData.name}</extra>",
    }
