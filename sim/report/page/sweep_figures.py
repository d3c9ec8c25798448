"""A sweep as figures: what is gained over the grid, with the break-even line, and the metrics themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..number_text import number_text
from .cases import Choice, has_scope
from .effect_figure import SYMBOLS, break_even, ratio_axis
from .figure import Figure, Json, View, axis, category_axis, error_bars, usd_axis, view_key
from .gain_map import map_style
from .result_arms import COLOURS, LINES, interval_of, part_of, value_of
from .result_arms import SYMBOLS as MARKS
from .sweep_grid import GAINS, Axis, Gain, Grid, gain

METRICS = (
    ("output_throughput", "output throughput, tok/s"),
    ("mean_tpot_ms", "TPOT mean, ms"),
    ("p95_tpot_ms", "TPOT p95, ms"),
    ("mean_ttft_ms", "TTFT mean, ms"),
    ("p95_ttft_ms", "TTFT p95, ms"),
    ("p95_itl_ms", "ITL p95, ms"),
    ("mean_e2el_ms", "E2E mean, ms"),
    ("p95_e2el_ms", "E2E p95, ms"),
    ("request_goodput", "request goodput, 1/s"),
    ("committed_tokens_per_round", "committed tokens per round"),
    ("mean_running", "mean running"),
    ("kv_utilisation", "KV utilisation"),
    ("usd_per_successful_task", "$ per successful task"),
    ("usd_per_million_output_tokens", "$ per million output tokens"),
)
GAIN_NOTE = (
    "Times better than the baseline, with 95 % intervals; the dashed line is break-even: above it speculation gains. "
    "● better, ✕ worse, ○ no difference shown, ◇ not tested."
)
MAP_NOTE = "Times better than the baseline; ≈ no difference shown. Blue gains, orange loses."
VALUE_NOTE = "Means over replications with 95 % intervals. The grey line is the baseline."
MANY = 8  # times between the ends of an axis, from which on it is drawn by ratio


def gain_figures(
    grid: Grid, arms: Sequence[str], every: Sequence[str | None], metrics: Sequence[tuple[str, str]]
) -> list[Figure]:
    """The gain as lines with the break-even line, and as a map where there are two axes.

    Their controls are `arm`, `slice`, `gain` and the other axes.
    """
    lines: dict[str, View] = {}
    maps: dict[str, View] = {}
    for arm, name in enumerate(arms):
        for index, scope in enumerate(every):
            for which, (metric, label) in enumerate(metrics):
                for others in grid.other_choices():
                    gains = _gains(grid, name, scope, metric, others)
                    if any(one.ratio is not None for line in gains for one in line):
                        key = view_key((arm, index, which, *others))
                        traces = [_gain_line(grid, line) for line in gains]
                        title = {"yaxis": ratio_axis(f"times better, {label}", traces, "y")}
                        lines[key] = View(traces, title)
                        maps[key] = View([_map(gains)])
    across = grid.axes[grid.across]
    keys = ("arm", "slice", "gain", *(f"axis-{index}" for index in grid.others))
    layout = {"height": 440, "xaxis": _value_axis(across), "yaxis": {}, "shapes": [break_even("y")], "showlegend": True}
    summary = f"Gain over the baseline against {across.label}, with the break-even line"
    figures = [Figure("gain", summary, _line_styles(grid), layout, lines, keys, GAIN_NOTE)]
    if grid.lines is not None:
        figures.append(_map_figure(grid, across, grid.axes[grid.lines], maps, keys))
    return figures


def value_figure(grid: Grid, arms: Sequence[str], every: Sequence[str | None]) -> Figure:
    """A metric itself against the load, a line for each draft length. Controls: `arm`, `slice`, `metric`, axes."""
    views = {}
    for arm, name in enumerate(arms):
        for index, scope in enumerate(every):
            for which, (metric, label) in enumerate(known_metrics(grid)):
                for others in grid.other_choices():
                    traces = [
                        _value_line(grid, name, scope, metric, line, others) for line in range(grid.line_values())
                    ]
                    baseline = _value_line(grid, "baseline", scope, metric, 0, others)
                    usd = "y" if metric.startswith("usd_") else None
                    layout = {"yaxis": usd_axis(label) if usd else axis(label, rangemode="tozero")}
                    if any((baseline, *traces)):
                        views[view_key((arm, index, which, *others))] = View([baseline, *traces], layout, usd)
    across = grid.axes[grid.across]
    style = {**_line_style("baseline", 0), "line": {"color": "@baseline", "width": 3}, "marker": {"color": "@baseline"}}
    keys = ("arm", "slice", "metric", *(f"axis-{index}" for index in grid.others))
    frame = {"height": 440, "xaxis": _value_axis(across), "yaxis": {}, "showlegend": True}
    summary = f"Metrics against {across.label}"
    return Figure("values", summary, [style, *_line_styles(grid)], frame, views, keys, VALUE_NOTE)


def known_metrics(grid: Grid) -> list[tuple[str, str]]:
    """The metrics that any cell has."""
    arms = [arm for cell in grid.cells.values() for arm in cell["arms"].values()]
    return [pair for pair in METRICS if any(value_of(arm, pair[0]) is not None for arm in arms)]


def known_gains(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The metrics that arms are compared by, the sweep's own first."""
    first = document["speedup"]["metric"]
    named = dict(GAINS)
    compared = {metric for cell in document["cells"] for own in cell["comparison"].values() for metric in own}
    return [(first, named.get(first, first)), *(pair for pair in GAINS if pair[0] != first and pair[0] in compared)]


def _gains(grid: Grid, arm: str, scope: str | None, metric: str, others: Choice) -> list[list[Gain]]:
    """By line, then along it."""
    nothing = Gain(None, None, "not_tested")
    return [
        [
            nothing if (cell := grid.cell(place, line, others)) is None else gain(cell, arm, scope, metric)
            for place in range(len(grid.axes[grid.across].values))
        ]
        for line in range(grid.line_values())
    ]


def _gain_line(grid: Grid, gains: Sequence[Gain]) -> Json:
    ratios = [one.ratio for one in gains]
    return {
        "x": _positions(grid.axes[grid.across]),
        "y": ratios,
        "error_y": error_bars(ratios, [one.interval for one in gains]),
        "marker": {"symbol": [SYMBOLS.get(one.verdict, "diamond-open") for one in gains]},
    }


def _map(gains: Sequence[Sequence[Gain]]) -> Json:
    logs = [[None if one.ratio is None else math.log2(one.ratio) for one in line] for line in gains]
    reach = max([0.2, *(abs(value) for line in logs for value in line if value is not None)])
    return {
        "z": logs,
        "zmin": -reach,
        "zmax": reach,
        "text": [[_map_text(one) for one in line] for line in gains],
        "x": list(range(len(gains[0]))),
        "y": list(range(len(gains))),
    }


def _map_text(one: Gain) -> str:
    if one.ratio is None:
        return ""
    return f"{number_text(one.ratio)}x" + (" ≈" if one.verdict == "no_difference_shown" else "")


def _map_figure(grid: Grid, across: Axis, lines: Axis, views: dict[str, View], keys: tuple[str, ...]) -> Figure:
    layout = {
        "height": 110 + 34 * len(lines.values),
        "xaxis": category_axis(across.texts, title={"text": across.label}),
        "yaxis": category_axis(lines.texts, title={"text": lines.label}),
    }
    summary = f"Gain over {across.label} and {lines.label}"
    return Figure("map", summary, [map_style()], layout, views, keys, MAP_NOTE, value_label="times better")


def _value_line(grid: Grid, arm: str, scope: str | None, metric: str, line: int, others: Choice) -> Json | None:
    values: list[float | None] = []
    intervals: list[Sequence[float] | None] = []
    for place in range(len(grid.axes[grid.across].values)):
        cell = grid.cell(place, line, others)
        known = cell is not None and arm in cell["arms"] and has_scope(cell, scope)
        part = part_of(cell["arms"][arm], scope) if cell is not None and known else {}
        values.append(value_of(part, metric))
        intervals.append(interval_of(part, metric))
    if all(value is None for value in values):
        return None
    return {"x": _positions(grid.axes[grid.across]), "y": values, "error_y": error_bars(values, intervals)}


def _line_styles(grid: Grid) -> list[Json]:
    if grid.lines is None:
        return [_line_style("speculation", 0)]
    lines = grid.axes[grid.lines]
    word = "k = " if lines.label == "draft length k" else ""
    return [_line_style(f"{word}{text}", number) for number, text in enumerate(lines.texts)]


def _line_style(name: str, number: int) -> Json:
    colour = f"@c{number % COLOURS}"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "line": {"color": colour, "width": 2, "dash": LINES[number % len(LINES)]},
        "marker": {
            "color": colour,
            "size": 8,
            "symbol": MARKS[number % len(MARKS)],
            "line": {"color": colour, "width": 1.5},
        },
        "error_y": {"thickness": 1, "width": 3},
        "hovertemplate": "%{y:.3~g}<extra>%{fullData.name}</extra>",
    }


def _numbers(one: Axis) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in one.values)


def _positions(one: Axis) -> list[float]:
    return list(one.values) if _numbers(one) else [float(place) for place in range(len(one.values))]


def _value_axis(one: Axis) -> Json:
    """By ratio where the values span one, by place where they are no numbers."""
    if not _numbers(one):
        return category_axis(one.texts, title={"text": one.label})
    ticks = {"tickvals": list(one.values), "ticktext": one.texts}
    if min(one.values) > 0 and max(one.values) >= MANY * min(one.values):
        return axis(one.label, type="log", **ticks)
    return axis(one.label, **ticks) if len(one.values) <= 12 else axis(one.label)
