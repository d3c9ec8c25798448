"""Cost by arm, at the price that the reader sets."""

from __future__ import annotations

from typing import Any

from .figure import Figure, Json, View, axis, category_axis, choices, error_bars, view_key
from .result_arms import Arm, colour, interval_of, part_of, scopes, value_of

COSTS = (
    ("usd_per_successful_task", "per successful task"),
    ("usd_per_request", "per request"),
    ("usd_per_million_output_tokens", "per million output tokens"),
)
NOTE = "At this load, idle time included, with 95 % intervals. Costs follow the price per GPU-hour at the top of the page."


def costs_known(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The costs that any arm has."""
    return [cost for cost in COSTS if any(value_of(arm, cost[0]) is not None for arm in document["arms"].values())]


def cost_figure(document: dict[str, Any]) -> Figure | None:
    """Bars by arm; controls `slice` and `cost`. None without a price."""
    known = costs_known(document)
    if not known:
        return None
    arms: dict[str, Arm] = document["arms"]
    every = scopes(document)
    views = {}
    for choice in choices(len(every), len(known)):
        metric, label = known[choice[1]]
        parts = [part_of(arm, every[choice[0]]) for arm in arms.values()]
        values = [value_of(part, metric) for part in parts]
        if any(value is not None for value in values):
            bars = error_bars(values, [interval_of(part, metric) for part in parts])
            trace: Json = {"x": list(range(len(arms))), "y": values, "error_y": bars}
            views[view_key(choice)] = View([trace], {"yaxis": axis(f"$ {label}", rangemode="tozero")})
    style = {
        "type": "bar",
        "width": 0.5,
        "marker": {"color": [colour(place) for place in range(len(arms))]},
        "hovertemplate": "$%{y:.3~g}<extra></extra>",
    }
    layout = {"height": 340, "xaxis": category_axis(list(arms), range=[-0.7, len(arms) - 0.3]), "yaxis": {}}
    return Figure("cost", "Cost by arm with its interval", [style], layout, views, ("slice", "cost"), NOTE, usd_axis="y")
