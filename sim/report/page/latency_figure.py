"""Latency distributions: quantiles with their intervals, and whole curves where the requests' tables are there."""

from __future__ import annotations

from collections.abc import Mapping

from .cases import Cases, has_scope
from .figure import Figure, Json, View, axis, choices, error_bars, view_key
from .request_tables import ALL, PERCENTS, Quantiles
from .result_arms import LINES, SYMBOLS, Arm, colour, interval_of, part_of

LATENCIES = (
    ("ttft", "TTFT"),
    ("tpot", "TPOT"),
    ("itl", "ITL"),
    ("e2el", "E2E latency"),
    ("decode", "decode latency"),
    ("queue", "queue time"),
)
QUANTILES = (("median", 50.0), ("p95", 95.0), ("p99", 99.0))
SLO_KEYS = {"ttft": "ttft_ms", "tpot": "tpot_ms", "e2el": "e2el_ms"}
POINTS = "Marks: median, p95 and p99 with their 95 % intervals, means over replications."
CURVES = " Curves: all completed requests of all replications, warm-up included (ITL has none)."
ADVICE = " `specsim run --out DIR` writes the tables that whole curves are drawn from."


def latency_figure(cases: Cases, quantiles: Mapping[str, Quantiles]) -> Figure:
    """Share of requests within a latency. quantiles: by arm, of a single case where its table was there.

    Its controls are those of the cases, `slice` and `latency`.
    """
    arms = cases.arms()
    style = [_curve(name, place) for place, name in enumerate(arms)]
    style += [_points(name, place) for place, name in enumerate(arms)]
    style.append(_limit())
    every = cases.scopes()
    views = {}
    for case, document in cases:
        slo = document["scenario"].get("slo") or {}
        for choice in choices(len(every), len(LATENCIES)):
            scope, (metric, label) = every[choice[0]], LATENCIES[choice[1]]
            if not has_scope(document, scope):
                continue
            curves = [_curve_values(quantiles.get(name, {}).get(scope or ALL, {}).get(metric)) for name in arms]
            points = [_point_values(document["arms"].get(name), scope, metric) for name in arms]
            limit = slo.get(SLO_KEYS.get(metric, ""))
            if any(points):
                traces = [*curves, *points, None if limit is None else {"x": [limit, limit], "y": [0, 100]}]
                views[view_key((*case, *choice))] = View(traces, {"xaxis": _axis(label, points, curves)})
    layout = {
        "height": 420,
        "xaxis": {},
        "yaxis": axis("% of requests within it", range=[0, 102]),
    }
    note = POINTS + (CURVES if quantiles else ADVICE)
    summary = "Share of requests within a latency, by arm"
    return Figure("latency", summary, style, layout, views, (*cases.keys, "slice", "latency"), note)


def _curve(name: str, place: int) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "line": {"color": colour(place), "width": 2, "dash": LINES[place % len(LINES)]},
        "hovertemplate": "%{y:.3~g} %: %{x:.3~g} ms<extra>%{fullData.name}</extra>",
    }


def _points(name: str, place: int) -> Json:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}: median, p95, p99",
        "legendgroup": name,
        "marker": {"color": colour(place), "size": 9, "symbol": SYMBOLS[place % len(SYMBOLS)]},
        "hovertemplate": "p%{y:.3~g}: %{x:.3~g} ms<extra>%{fullData.name}</extra>",
    }


def _limit() -> Json:
    return {"type": "scatter", "mode": "lines", "name": "SLO", "line": {"color": "@ink", "width": 1.5, "dash": "dot"}}


def _curve_values(values: list[float] | None) -> Json | None:
    return None if values is None else {"x": [float(f"{ms:.5g}") for ms in values], "y": list(PERCENTS)}


def _point_values(arm: Arm | None, scope: str | None, metric: str) -> Json | None:
    part = {} if arm is None else part_of(arm, scope)
    known = [
        (f"{name}_{metric}_ms", percent) for name, percent in QUANTILES if part.get(f"{name}_{metric}_ms") is not None
    ]
    if not known:
        return None
    values = [part[field] for field, _ in known]
    bars = error_bars(values, [interval_of(part, field) for field, _ in known])
    return {"x": values, "y": [percent for _, percent in known], "error_x": bars}


def _axis(label: str, points: list[Json | None], curves: list[Json | None]) -> Json:
    values = [value for trace in (*points, *curves) if trace for value in trace["x"]]
    scale = {"type": "log", "dtick": "D2"} if min(values) > 0 else {"type": "linear"}
    return axis(f"{label}, ms", **scale)
