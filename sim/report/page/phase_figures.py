"""Where the time goes: a request's wall time by phase, and the parts of its time to first token, per slice and arm."""

from __future__ import annotations

from typing import Any

from ..reason import TTFT_PARTS
from ..table_rows import PHASES
from .figure import Figure, Json, View, axis, category_axis, shortened, view_key
from .result_arms import Arm, part_of, scopes

UNITS = ("milliseconds", "share of the time")
HATCHES = {"waiting": "/", "prefill_interference": "x", "drafting": "\\", "host": "."}
TTFT_COLOURS = {"queue": "waiting", "prefill": "prefill", "drafter": "drafting", "interference": "prefill_interference"}
PHASE_NOTE = "Mean over completed requests, from arrival to last token. A line is an arm, of each slice where there are several."
TTFT_NOTE = "Mean over completed requests; the parts sum to the mean TTFT."


def phase_figure(document: dict[str, Any]) -> Figure:
    """Stacked bars of the phases. Its control is `phase-unit`."""
    bars = _bars(document)
    used = [(name, label) for name, label in PHASES if any((arm["time_share"].get(name) or 0) > 0 for _, arm in bars)]
    views = {}
    for unit in range(len(UNITS)):
        scale = [(arm["mean_e2el_ms"] or 0.0) if unit == 0 else 100.0 for _, arm in bars]
        traces = [
            _values([(arm["time_share"].get(name) or 0.0) * by for (_, arm), by in zip(bars, scale, strict=True)])
            for name, _ in used
        ]
        views[view_key((unit,))] = View(traces, {"xaxis": axis(("ms of a mean request", "% of its time")[unit])})
    style = [_style(label, name, name) for name, label in used]
    return Figure("phases", "A request's time by phase, per slice and arm", style, _layout(bars), views, ("phase-unit",), PHASE_NOTE)


def ttft_figure(document: dict[str, Any]) -> Figure | None:
    """Stacked bars of the parts of TTFT; None where no arm has any."""
    bars = _bars(document)
    traces = [_values([arm.get(f"mean_ttft_{part}_ms") or 0.0 for _, arm in bars]) for part in TTFT_PARTS]
    if not any(any(trace["x"]) for trace in traces):
        return None
    style = [_style(label, TTFT_COLOURS[part], TTFT_COLOURS[part]) for part, label in TTFT_PARTS.items()]
    layout = _layout(bars) | {"xaxis": axis("mean TTFT, ms")}
    return Figure("ttft", "Mean time to first token by its parts, per slice and arm", style, layout, {"": View(traces)}, (), TTFT_NOTE)


def _bars(document: dict[str, Any]) -> list[tuple[str, Arm]]:
    """A label and the numbers of each bar, the first at the bottom."""
    bars = []
    several = len(scopes(document)) > 1
    for scope in scopes(document):
        for name, arm in document["arms"].items():
            where = "all" if scope is None else shortened(scope, 14)
            bars.append((f"{where}: {shortened(name, 14)}" if several else name, part_of(arm, scope)))
    return bars[::-1]


def _layout(bars: list[tuple[str, Arm]]) -> Json:
    return {
        "height": 130 + 30 * len(bars),
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": {},
        "yaxis": category_axis([label for label, _ in bars], range=[-0.6, len(bars) - 0.4]),
        "legend": {"traceorder": "normal"},
    }


def _style(label: str, colour: str, phase: str) -> Json:
    pattern = {"shape": HATCHES.get(phase, ""), "fgcolor": "@paper", "fgopacity": 0.55, "size": 6, "fillmode": "overlay"}
    return {
        "type": "bar",
        "orientation": "h",
        "name": label,
        "marker": {"color": f"@{colour}", "pattern": pattern, "line": {"color": "@paper", "width": 1}},
        "hovertemplate": "%{x:.3~g}<extra>%{fullData.name}</extra>",
    }


def _values(widths: list[float]) -> Json:
    return {"x": widths, "y": list(range(len(widths)))}
