"""Where the time goes: a request's wall time by phase, and the parts of its time to first token, per slice and arm."""

from __future__ import annotations

from typing import Any

from ..reason import TTFT_PARTS
from ..table_rows import PHASES
from .cases import Cases
from .figure import Figure, Json, View, axis, category_axis, shortened, view_key
from .result_arms import Arm, part_of, scopes

UNITS = ("milliseconds", "share of the time")
HATCHES = {"waiting": "/", "prefill_interference": "x", "drafting": "\\", "host": "."}
TTFT_COLOURS = {"queue": "waiting", "prefill": "prefill", "drafter": "drafting", "interference": "prefill_interference"}
PHASE_NOTE = (
    "Mean over completed requests, from arrival to last token. A bar is an arm, of each slice where there are several."
)
TTFT_NOTE = "Mean over completed requests; the parts sum to the mean TTFT."


Bars = list[tuple[str, Arm]]


def phase_figure(cases: Cases) -> Figure:
    """Stacked bars of the phases. Its controls are those of the cases and `phase-unit`."""
    bars = {choice: _bars(document) for choice, document in cases}
    every = [arm for own in bars.values() for _, arm in own]
    used = [(name, label) for name, label in PHASES if any((arm["time_share"].get(name) or 0) > 0 for arm in every)]
    views = {}
    for choice, own in bars.items():
        for unit in range(len(UNITS)):
            scale = [(arm["mean_e2el_ms"] or 0.0) if unit == 0 else 100.0 for _, arm in own]
            traces = [
                _values([(arm["time_share"].get(name) or 0.0) * by for (_, arm), by in zip(own, scale, strict=True)])
                for name, _ in used
            ]
            title = axis(("ms of a mean request", "% of its time")[unit])
            views[view_key((*choice, unit))] = View(traces, {"xaxis": title, "yaxis": _labels(own)})
    style = [_style(label, name, name) for name, label in used]
    summary = "A request's time by phase, per slice and arm"
    keys = (*cases.keys, "phase-unit")
    return Figure("phases", summary, style, _layout(list(bars.values())), views, keys, PHASE_NOTE)


def ttft_figure(cases: Cases) -> Figure | None:
    """Stacked bars of the parts of TTFT; None where no arm has any. Its controls are those of the cases."""
    bars = {choice: _bars(document) for choice, document in cases}
    views = {}
    for choice, own in bars.items():
        traces = [_values([arm.get(f"mean_ttft_{part}_ms") or 0.0 for _, arm in own]) for part in TTFT_PARTS]
        if any(any(trace["x"]) for trace in traces):
            views[view_key(choice)] = View(traces, {"yaxis": _labels(own)})
    if not views:
        return None
    style = [_style(label, TTFT_COLOURS[part], TTFT_COLOURS[part]) for part, label in TTFT_PARTS.items()]
    layout = _layout(list(bars.values())) | {"xaxis": axis("mean TTFT, ms")}
    summary = "Mean time to first token by its parts, per slice and arm"
    return Figure("ttft", summary, style, layout, views, cases.keys, TTFT_NOTE)


def _bars(document: dict[str, Any]) -> Bars:
    """A label and the numbers of each bar, the first at the bottom."""
    bars = []
    several = len(scopes(document)) > 1
    for scope in scopes(document):
        for name, arm in document["arms"].items():
            where = "all" if scope is None else shortened(scope, 14)
            bars.append((f"{where}: {shortened(name, 14)}" if several else name, part_of(arm, scope)))
    return bars[::-1]


def _labels(bars: Bars) -> Json:
    return category_axis([label for label, _ in bars], range=[-0.6, len(bars) - 0.4])


def _layout(every: list[Bars]) -> Json:
    return {
        "height": 130 + 30 * max(map(len, every)),
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": {},
        "yaxis": {},
        "legend": {"traceorder": "normal"},
    }


def _style(label: str, colour: str, phase: str) -> Json:
    pattern = {
        "shape": HATCHES.get(phase, ""),
        "fgcolor": "@paper",
        "fgopacity": 0.55,
        "size": 6,
        "fillmode": "overlay",
    }
    return {
        "type": "bar",
        "orientation": "h",
        "name": label,
        "marker": {"color": f"@{colour}", "pattern": pattern, "line": {"color": "@paper", "width": 1}},
        "hovertemplate": "%{x:.3~g}<extra>%{fullData.name}</extra>",
    }


def _values(widths: list[float]) -> Json:
    return {"x": widths, "y": list(range(len(widths)))}
