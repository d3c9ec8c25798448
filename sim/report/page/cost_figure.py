"""Cost by arm, at the price that the reader sets."""

from __future__ import annotations

from .cases import Cases, has_scope
from .figure import Figure, Json, View, category_axis, choices, error_bars, usd_axis, view_key
from .result_arms import colour, interval_of, part_of, value_of

COSTS = (
    ("usd_per_successful_task", "per successful task"),
    ("usd_per_request", "per request"),
    ("usd_per_million_output_tokens", "per million output tokens"),
)
NOTE = (
    "At this load, idle time included, with 95 % intervals. Costs follow the price per GPU-hour at the top of the page."
)


def costs_known(cases: Cases) -> list[tuple[str, str]]:
    """The costs that any arm has."""
    arms = [arm for _, document in cases for arm in document["arms"].values()]
    return [cost for cost in COSTS if any(value_of(arm, cost[0]) is not None for arm in arms)]


def cost_figure(cases: Cases) -> Figure | None:
    """Bars by arm; its controls are those of the cases, `slice` and `cost`. None without a price."""
    known, every, arms = costs_known(cases), cases.scopes(), cases.arms()
    if not known:
        return None
    views = {}
    for case, document in cases:
        for choice in choices(len(every), len(known)):
            (metric, label), scope = known[choice[1]], every[choice[0]]
            if has_scope(document, scope):
                parts = [part_of(document["arms"][name], scope) if name in document["arms"] else {} for name in arms]
                values = [value_of(part, metric) for part in parts]
                bars = error_bars(values, [interval_of(part, metric) for part in parts])
                trace: Json = {"x": list(range(len(arms))), "y": values, "error_y": bars}
                layout = {"yaxis": usd_axis(f"$ {label}")}
                views[view_key((*case, *choice))] = View([trace], layout, usd_axis="y")
    style = {
        "type": "bar",
        "width": 0.5,
        "marker": {"color": [colour(place) for place in range(len(arms))]},
        "hovertemplate": "$%{y:.3~g}<extra></extra>",
    }
    frame = {"height": 340, "xaxis": category_axis(arms, range=[-0.7, len(arms) - 0.3]), "yaxis": {}}
    keys = (*cases.keys, "slice", "cost")
    return Figure("cost", "Cost by arm with its interval", [style], frame, views, keys, NOTE)
