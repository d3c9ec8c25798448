"""What an arm changes against the baseline: ratios with their intervals, metric by metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .cases import Cases, has_scope
from .figure import Figure, Json, View, axis, category_axis, error_bars, view_key
from .result_arms import colour, compared_part

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
RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100]
WIDEST = 2.5  # times beyond the ratios that an interval may stretch the axis
MARGIN = 1.06
MOST_BAND = 110  # pixels of a metric, whatever the number of arms
NOTE = (
    "Ratio to the baseline with its 95 % interval, 1 is no change. Arrows point to the better side. "
    "● better, ✕ worse, ○ no difference shown, ◇ not tested."
)


def effect_figure(cases: Cases) -> Figure | None:
    """None where no arm is compared. Its controls are those of the cases and `slice`."""
    arms = [name for name in cases.arms() if any(name in document["comparison"] for _, document in cases)]
    metrics = [metric for metric, _ in METRICS if any(_known(document, metric) for _, document in cases)][::-1]
    if not metrics:
        return None
    labels = [dict(METRICS)[metric] for metric in metrics]
    places = {name: place for place, name in enumerate(cases.arms())}
    views = {}
    for choice, document in cases:
        for index, scope in enumerate(cases.scopes()):
            if has_scope(document, scope):
                own = [_part(document, name, scope) for name in arms]
                traces = [_points(one, metrics, n, len(arms)) if one else None for n, one in enumerate(own)]
                along = ratio_axis("ratio to the baseline", traces, "x")
                views[view_key((*choice, index))] = View(traces, {"xaxis": along})
    layout = {
        "height": 90 + max(26, min(17 * len(arms), MOST_BAND)) * len(metrics),
        "xaxis": {},
        "yaxis": category_axis(labels, range=[-0.6, len(labels) - 0.4]),
        "showlegend": len(arms) > 1,
        "shapes": [break_even("x")],
    }
    style = [_style(name, places[name], len(arms)) for name in arms]
    summary = "Ratio of each metric to the baseline with its interval"
    return Figure("effect", summary, style, layout, views, (*cases.keys, "slice"), NOTE)


def ratio_axis(title: str, traces: Sequence[Json | None], name: str) -> Json:
    """A logarithmic axis of ratios: 0.5 and 2 are as far from 1.

    traces: what is drawn along the axis `name`, x or y. It reaches 1, every ratio, and its interval unless that is so
    wide that nothing else could be seen.
    """
    drawn = [trace for trace in traces if trace]
    ratios = [1.0, *(ratio for trace in drawn for ratio in trace[name] if ratio is not None)]
    ends = [end for trace in drawn for end in _ends(trace[name], trace[f"error_{name}"])]
    low = max(min([*ratios, *ends]), min(ratios) / WIDEST)
    high = min(max([*ratios, *ends]), max(ratios) * WIDEST)
    reach = [math.log10(low / MARGIN), math.log10(high * MARGIN)]
    ticks = {"tickvals": RATIO_TICKS, "ticktext": [f"{tick:g}" for tick in RATIO_TICKS]}
    return axis(title, type="log", range=reach, **ticks)


def _ends(values: Sequence[float | None], error: Json) -> list[float]:
    """Both ends of every interval."""
    reach = zip(values, error["arrayminus"], error["array"], strict=True)
    return [
        end for value, below, above in reach if value and above is not None for end in (value - below, value + above)
    ]


def break_even(axis_name: str) -> Json:
    """The line at ratio 1 across a figure."""
    along = {"x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1}
    if axis_name == "y":
        along = {"y0": 1, "y1": 1, "xref": "paper", "x0": 0, "x1": 1}
    return {"type": "line", **along, "line": {"color": "@ink", "width": 1.5, "dash": "dash"}}


def _known(document: dict[str, Any], metric: str) -> bool:
    return any(_ratio(own, metric) is not None for own in document["comparison"].values())


def _part(document: dict[str, Any], arm: str, scope: str | None) -> dict[str, Any] | None:
    compared = document["comparison"].get(arm)
    return None if compared is None else compared_part(compared, scope)


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
    bounds = [positive_interval(one) for one in entries]
    shift = 0.0 if arms == 1 else 0.35 - 0.7 * arm / (arms - 1)  # arms of a metric side by side
    return {
        "x": ratios,
        "y": [place + shift for place in range(len(metrics))],
        "error_x": error_bars(ratios, bounds),
        "marker": {"symbol": [SYMBOLS.get(one.get("verdict", ""), "diamond-open") for one in entries]},
    }


def positive_interval(entry: dict[str, Any]) -> tuple[float, float] | None:
    """The interval of a ratio; its lower end stays above 0, where a logarithmic axis ends."""
    low, high, ratio = entry.get("low"), entry.get("high"), entry.get("ratio")
    return None if low is None or high is None or not ratio else (max(low, ratio / 100), high)
