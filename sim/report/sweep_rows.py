"""The tables of a sweep as text: one row a cell, and heat maps of the speed-up over two axes. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from .changes import metric_value
from .number_text import number_text
from .table_rows import Row

MOST_ROWS = 100  # on the screen; the files have all
MOST_MAPS = 6
DRAFT_LENGTH = "num_speculative_tokens"
METRIC_LABELS = {
    "output_throughput": "output throughput",
    "mean_tpot_ms": "mean TPOT",
    "mean_e2el_ms": "mean E2E latency",
}
CELL_METRICS = (
    ("output_throughput", "tok/s"),
    ("mean_ttft_ms", "TTFT ms"),
    ("mean_tpot_ms", "TPOT ms"),
    ("p95_e2el_ms", "E2E p95 ms"),
    ("usd_per_successful_task", "$/task"),
)


class Shade(NamedTuple):
    """A cell of a heat map. level: -3 (a clear loss) to 3 (a clear gain), 0 at break-even or without a number."""

    text: str
    level: int


class HeatMap(NamedTuple):
    """Rows by the first axis, columns by the second; labels are the axes' values."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Shade]]]


def value_text(value: Any) -> str:
    """A value of an axis as it was written."""
    return value if isinstance(value, str) else json.dumps(value)


def short_paths(document: dict[str, Any]) -> dict[str, str]:
    """The last word of each axis' path where that tells it apart from the others; `k` for the draft length."""
    paths = [axis["path"] for axis in document["axes"]]
    words = [path.rpartition(".")[2] for path in paths]
    lasts = ["k" if word == DRAFT_LENGTH else word for word in words]
    return {path: last if lasts.count(last) == 1 else path for path, last in zip(paths, lasts, strict=True)}


def sweep_answer(document: dict[str, Any]) -> str:
    """The best cell, how many cells gain, and between which neighbours the gain is lost."""
    cells = document["cells"]
    label = _metric_label(document)
    known = [(arm, cell) for cell in cells for arm, one in cell["speedup"].items() if one["ratio"] is not None]
    if not known:
        return f"{len(cells)} cells without speculation: there is no speed-up to tell."
    arm, best = max(known, key=lambda one: one[1]["speedup"][one[0]]["ratio"])
    ratio = best["speedup"][arm]["ratio"]
    gains = sum(cell["speedup"][name]["ratio"] > 1 for name, cell in known)
    names = short_paths(document)
    where = ", ".join(f"{names[path]} {value_text(value)}" for path, value in best["values"].items())
    which = f" in arm {arm}" if len(cells[0]["speedup"]) > 1 else ""
    told = f"Speculation gains in {gains} of {len(known)} cells by {label}; the most, {number_text(ratio)}x, at {where}"
    untested = " (one replication: not tested)" if document["replications"] == 1 else ""
    return f"{told}{which}{untested}." if ratio > 1 else f"Speculation gains in no cell by {label}{untested}."


def cell_rows(document: dict[str, Any]) -> tuple[list[str], list[Row]]:
    """Columns, and one row for each cell and arm; the baseline only where it stands alone."""
    names = short_paths(document)
    several = max(len(cell["speedup"]) for cell in document["cells"]) > 1
    columns = [*([""] if several else []), *(label for _, label in CELL_METRICS), "speed-up"]
    rows = []
    for cell in document["cells"]:
        place = ", ".join(f"{names[path]} {value_text(value)}" for path, value in cell["values"].items())
        for arm in cell["speedup"] or ("baseline",):
            result = cell["arms"][arm]
            texts = [number_text(metric_value(result, metric)) for metric, _ in CELL_METRICS]
            speedup = _speedup_text(cell["speedup"].get(arm))
            flag = " overloaded" if result["overload"]["detected"] else ""
            rows.append((place, [*([arm] if several else []), *texts, f"{speedup}{flag}"]))
    return columns, rows


def heat_maps(document: dict[str, Any]) -> Iterator[HeatMap]:
    """For two axes or more: the speed-up over the first two with several values, for each arm and value of the rest."""
    axes = [axis for axis in document["axes"] if len(axis["values"]) > 1]
    if len(axes) < 2 or not document["cells"][0]["speedup"]:
        return
    down, across, *rest = axes
    names = short_paths(document)
    arms = list(document["cells"][0]["speedup"])
    by_values = {_key(cell["values"]): cell for cell in document["cells"]}
    fixed = {axis["path"]: axis["values"][0] for axis in document["axes"] if len(axis["values"]) == 1}
    for arm, others in product(arms, product(*(axis["values"] for axis in rest))):
        held = fixed | {axis["path"]: value for axis, value in zip(rest, others, strict=True)}
        rows = []
        for value in down["values"]:
            at = [held | {down["path"]: value, across["path"]: other} for other in across["values"]]
            rows.append((value_text(value), [_shade(by_values[_key(one)]["speedup"][arm]) for one in at]))
        aside = "".join(f", {names[axis['path']]} {value_text(v)}" for axis, v in zip(rest, others, strict=True))
        title = f"Speed-up of {arm} over the baseline by {_metric_label(document)}{aside}"
        corner = f"{names[down['path']]} \\ {names[across['path']]}"
        yield HeatMap(title, corner, [value_text(value) for value in across["values"]], rows)


def _key(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _metric_label(document: dict[str, Any]) -> str:
    metric: str = document["speedup"]["metric"]
    return METRIC_LABELS.get(metric, metric)


def _shade(speedup: dict[str, Any]) -> Shade:
    """A loss stands in brackets, what is not told apart from 1 behind a tilde: readable without colours."""
    ratio = speedup["ratio"]
    if ratio is None:
        return Shade("-", 0)
    text = f"{ratio:.2f}"
    if speedup["verdict"] == "no_difference_shown" or text == "1.00":
        return Shade(f"~{text}", 0)
    size = 1 + sum(max(ratio, 1 / ratio) > bound for bound in (1.15, 1.5)) if ratio > 0 else 3
    return Shade(text, size) if ratio > 1 else Shade(f"({text})", -size)


def _speedup_text(speedup: dict[str, Any] | None) -> str:
    if speedup is None or speedup["ratio"] is None:
        return "-"
    text = f"{speedup['ratio']:.2f}x"
    if speedup["low"] is not None and speedup["high"] is not None:
        text += f" [{speedup['low']:.2f}, {speedup['high']:.2f}]"
    return text


def break_even_lines(document: dict[str, Any]) -> list[str]:
    """`speculative: num_speculative_tokens 3 gains below concurrency 64 to 128`."""
    names = short_paths(document)
    several = max(len(cell["speedup"]) for cell in document["cells"]) > 1
    lines = []
    for one in document["break_even"]:
        place = ", ".join(f"{names[path]} {value_text(value)}" for path, value in one["at"].items())
        low, high = one["between"]
        whose = f"{one['arm']}: " if several else ""
        at = f"at {place} " if place else ""
        between = f"between {value_text(low)} and {value_text(high)}"
        lines.append(f"break-even: {whose}{at}{names[one['path']]} {between}; gains {one['gains']} it")
    return lines
