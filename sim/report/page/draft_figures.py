"""Draft tokens: what each position costs and brings, how often it is accepted, and the lengths that were chosen."""

from __future__ import annotations

from typing import Any

from .cases import Cases
from .figure import Figure, Json, View, axis, view_key
from .result_arms import Arm, colour

MARGINAL_NOTE = (
    "Above: milliseconds that each draft token adds to a round and saves. Below: how often it is committed or accepted."
)
LENGTH_NOTE = "Share of the steps' time by the draft length that the schedule or policy chose."


def drafting_arms(cases: Cases) -> list[str]:
    """Arms whose draft tokens have a value in any case."""
    drafting = {name for _, document in cases for name, arm in document["arms"].items() if arm["marginal"]}
    return [name for name in cases.arms() if name in drafting]


def marginal_figure(cases: Cases) -> Figure | None:
    """Its controls are those of the cases and `drafting-arm`. None where no arm drafts."""
    views = {
        view_key((*choice, index)): View(_traces(document["arms"][name]))
        for choice, document in cases
        for index, name in enumerate(drafting_arms(cases))
        if document["arms"].get(name, {}).get("marginal")
    }
    if not views:
        return None
    bars = [_bar("adds", "@costs", "/"), _bar("saves", "@pays", "")]
    lines = [
        _line("P(committed)", "@c0", "circle", "solid"),
        _line("accepted, unconditional", "@c2", "square", "dot"),
        _line("accepted, conditional", "@c3", "diamond", "dash"),
    ]
    layout = {
        "height": 520,
        "barmode": "group",
        "xaxis": axis("draft token", dtick=1, anchor="y2"),
        "yaxis": axis("ms per round", domain=[0.46, 1], rangemode="tozero"),
        "yaxis2": axis("probability", domain=[0, 0.38], range=[0, 1.03]),
    }
    summary = "Value of each draft token: what it adds and saves, and how often it is committed"
    return Figure("marginal", summary, [*bars, *lines], layout, views, (*cases.keys, "drafting-arm"), MARGINAL_NOTE)


def conditional(rates: list[float]) -> list[float | None]:
    """Conditional acceptance by position from the unconditional one."""
    before = [1.0, *rates[:-1]]
    return [rate / all_before if all_before else None for rate, all_before in zip(rates, before, strict=True)]


def _traces(arm: Arm) -> list[Json | None]:
    rows = arm["marginal"]
    positions = [row["position"] for row in rows]
    rates = arm.get("spec_decode_per_position_acceptance_rates") or []
    counted = list(range(1, len(rates) + 1))
    return [
        {"x": positions, "y": [row["adds_ms"] for row in rows]},
        {"x": positions, "y": [row["saves_ms"] for row in rows]},
        {"x": positions, "y": [row["p_committed"] for row in rows]},
        {"x": counted, "y": rates} if rates else None,
        {"x": counted, "y": conditional(rates)} if rates else None,
    ]


def _bar(name: str, colour_name: str, hatch: str) -> Json:
    pattern = {"shape": hatch, "fgcolor": "@paper", "fgopacity": 0.6, "fillmode": "overlay"}
    marker = {"color": colour_name, "pattern": pattern}
    return {
        "type": "bar",
        "name": name,
        "marker": marker,
        "hovertemplate": "%{y:.3~g} ms<extra>%{fullData.name}</extra>",
    }


def _line(name: str, colour_name: str, symbol: str, dash: str) -> Json:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "yaxis": "y2",
        "line": {"color": colour_name, "dash": dash},
        "marker": {"symbol": symbol, "size": 8},
        "hovertemplate": "%{y:.3~g}<extra>%{fullData.name}</extra>",
    }


def length_figure(document: dict[str, Any]) -> Figure | None:
    """Draft lengths over the time of the steps, by arm; None where every arm has a fixed one."""
    arms = {
        place: (name, arm["draft_length"])
        for place, (name, arm) in enumerate(document["arms"].items())
        if arm.get("draft_length")
    }
    if not arms:
        return None
    style = [
        {
            "type": "bar",
            "name": name,
            "marker": {"color": colour(place)},
            "hovertemplate": "k = %{x}: %{y:.3~g} % of the time<extra>%{fullData.name}</extra>",
        }
        for place, (name, _) in arms.items()
    ]
    traces = [
        {"x": [row["drafts"] for row in rows], "y": [100 * row["time_share"] for row in rows]}
        for _, rows in arms.values()
    ]
    layout = {
        "height": 320,
        "barmode": "group",
        "xaxis": axis("draft length", dtick=1),
        "yaxis": axis("% of the steps' time", rangemode="tozero"),
        "showlegend": True,
    }
    return Figure(
        "lengths",
        "Draft lengths that were chosen, by share of time",
        style,
        layout,
        {"": View(traces)},
        (),
        LENGTH_NOTE,
    )
