"""What an arm changes against the baseline: ratios with their intervals, metric by metric."""

from __future__ import annotations

from typing import Any

from .figure import Figure, Json, View, axis, category_axis, error_bars, view_key
from .result_arms import colour, compared_part, scopes

METRICS = (
    ("mean_tpot_ms", "TPOT mean ↓"),
    ("p95_tpot_ms", "TPOT p95 ↓"),
    ("mean_ttft_ms", "TTFT mean ↓"),
    ("p95_ttft_ms", "TTFT p95 ↓"),
    ("p95_itl_ms", "ITL p95 ↓"),
    ("mean_e2el_ms", "E2E mean ↓"),
    ("p95_e2el_ms", "E2E p95 ↓"),
    ("output_throughput", "output throughput ↑"),
    ("request_goodput", "goodput ↑"),
    ("usd_per_successful_task", "$ per success ↓"),
)
SYMBOLS = {"better": "circle", "worse": "x", "no_difference_shown": "circle-open", "not_tested": "diamond-open"}
NOTE = (
    "Ratio to the baseline with its 95 % interval, 1 is no change. Arrows point to the better side. "
    "● better, ✕ worse, ○ no difference shown, ◇ not tested."
)


def effect_figure(document: dict[str, Any]) -> Figure | None:
    """None where no arm is compared. Its control is `slice`."""
    compared: dict[str, Any] = document["comparison"]
    arms = [name for name in document["arms"] if name in compared]
    if not arms:
        return None
    shown = [pair for pair in METRICS if any(_ratio(compared[name], pair[0]) is not None for name in arms)]
    if not shown:
        return None
    labels = [label for _, label in shown][::-1]
    metrics = [metric for metric, _ in shown][::-1]
    places = {name: place for place, name in enumerate(document["arms"])}
    style = [_style(name, places[name], len(arms)) for name in arms]
    views = {
        view_key((index,)): View([_points(compared_part(compared[name], scope), metrics, n, len(arms)) for n, name in enumerate(arms)])
        for index, scope in enumerate(scopes(document))
    }
    layout = {
        "height": 90 + max(26, 17 * len(arms)) * len(metrics),
        "xaxis": axis("ratio to the baseline", type="log", dtick="D2", tickformat="~g"),
        "yaxis": category_axis(labels, range=[-0.6, len(labels) - 0.4]),
        "showlegend": len(arms) > 1,
        "shapes": [break_even("x")],
    }
    return Figure(
        "effect", "Ratio of each metric to the baseline with its interval", style, layout, views, ("slice",), NOTE
    )


def break_even(axis_name: str) -> Json:
    """The line at ratio 1 across a figure."""
    along = {"x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
    if axis_name == "y":
        along = {"y0": 1, "y1": 1, "xref": "paper", "x0": 0, "x1": 1}
    return {"type": "line", **along, "line": {"color": "@ink", "width": 1.5, "dash": "dash"}}


def _ratio(compared: dict[str, Any], metric: str) -> float | None:
    ratio: float | None = (compared.get(metric) or {}).get("ratio")
    return ratio if ratio is not None and ratio > 0 else None


def _style(name: str, place: int, arms: int) -> Json:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {"color": colour(place), "size": 10 if arms < 4 else 8, "line": {"width": 2, "color": colour(place)}},
        "hovertemplate": "%{x:.3~g}x<extra></extra>",
    }


def _points(compared: dict[str, Any], metrics: list[str], arm: int, arms: int) -> Json:
    ratios = [_ratio(compared, metric) for metric in metrics]
    entries = [compared.get(metric) or {} for metric in metrics]
    bounds = [None if one.get("low") is None else (one["low"], one["high"]) for one in entries]
    shift = 0.0 if arms == 1 else 0.35 - 0.7 * arm / (arms - 1)  # arms of a metric side by side
    return {
        "x": ratios,
        "y": [place + shift for place in range(len(metrics))],
        "error_x": error_bars(ratios, bounds),
        "marker": {"symbol": [SYMBOLS.get(one.get("verdict", ""), "diamond-open") for one in entries]},
    }
