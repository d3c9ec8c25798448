"""Queue, batch, KV blocks and draft length over simulated time, where the tables of the steps are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .figure import Figure, Json, View, axis, view_key
from .result_arms import LINES, colour
from .step_tables import LEVELS, PARTS, Series

TITLES = {"waiting": "waiting", "running": "running", "blocks_used": "KV blocks", "drafts": "draft length"}
NOTE = (
    f"First replication; each point is the mean over one of {PARTS} parts of the time. Nothing is shown between steps."
)
MOST_REPLICAS = 16


def time_figure(document: dict[str, Any], series: Mapping[str, Sequence[Series]]) -> Figure | None:
    """One view a replica; the control is `replica`. None without tables."""
    count = replicas_shown(series)
    if count == 0:
        return None
    arms = list(document["arms"])
    levels = [name for name in LEVELS if name != "drafts" or _varies(series)]
    style = [_line(name, place, row) for row in range(len(levels)) for place, name in enumerate(arms)]
    views = {}
    for replica in range(count):
        traces: list[Json | None] = []
        for level in levels:
            for name in arms:
                own = series.get(name, ())
                here = own[replica] if replica < len(own) else None
                traces.append(None if here is None else {"x": _short(here.at_s), "y": _short(here.levels[level])})
        views[view_key((replica,))] = View(traces)
    return Figure(
        "time", "Queue, batch and KV blocks over time, by arm", style, _layout(levels), views, ("replica",), NOTE
    )


def replicas_shown(series: Mapping[str, Sequence[Series]]) -> int:
    """How many replicas there are to pick from."""
    return min(MOST_REPLICAS, max((len(own) for own in series.values()), default=0))


def _varies(series: Mapping[str, Sequence[Series]]) -> bool:
    """Whether a schedule or policy moved the draft length; idle parts, where it is 0, tell nothing."""
    lengths = [[round(v, 3) for v in one.levels["drafts"] if v > 0] for own in series.values() for one in own]
    return any(len(set(some)) > PARTS // 10 for some in lengths)


def _short(values: list[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _line(name: str, place: int, row: int) -> Json:
    line: Json = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "showlegend": row == 0,
        "line": {"color": colour(place), "width": 1.5, "dash": LINES[place % len(LINES)]},
        "hovertemplate": "%{x:.4~g} s: %{y:.3~g}<extra>%{fullData.name}</extra>",
    }
    return line if row == 0 else {**line, "yaxis": f"y{row + 1}"}


def _layout(levels: list[str]) -> Json:
    height = 1 / len(levels)
    layout: Json = {"height": 60 + 170 * len(levels), "xaxis": axis("simulated time, s", anchor=f"y{len(levels)}")}
    for row, level in enumerate(levels):
        top = 1 - row * height
        name = "yaxis" if row == 0 else f"yaxis{row + 1}"
        layout[name] = axis(TITLES[level], domain=[max(0.0, top - 0.84 * height), top], rangemode="tozero")
    return layout
