"""The page of `specsim sweep`: gains over the grid with the break-even line, and every cell as its own result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..number_text import number_text
from . import case_sections as shared
from .cases import texts
from .definitions import term
from .figure import Control
from .markup import Cell, Row, details, table, tag
from .page import Page, section
from .run_page import facts, price_of, scenario_text
from .sweep_answer import break_even_lines, sweep_answer
from .sweep_figures import gain_figures, known_gains, known_metrics, value_figure
from .sweep_grid import Grid, grid_of

MOST_CELLS = 400  # whose own results are in the page
TOO_MANY = (
    f"The page holds the results of single cells for at most {MOST_CELLS} cells; the sweep's folder has them all."
)
VERDICTS = {
    "better": "better",
    "worse": "worse",
    "no_difference_shown": "no difference shown",
    "not_tested": "not tested",
}


def sweep_page(document: dict[str, Any], folder: Path) -> Page:
    """A sweep's page. folder: not used, a sweep's document holds all that its page has."""
    grid = grid_of(document)
    cases = grid.cases(document["scenario"])
    arms, every, gains = _compared(document), cases.scopes(), known_gains(document)
    figures = gain_figures(grid, arms, every, gains)
    values = value_figure(grid, arms, every)
    picked = Control("gain", "Gain in", [label for _, label in gains])
    arm = Control("arm", "Arm", arms)
    even = break_even_lines(document)
    sections = [
        section(
            "Gain over the grid",
            tag("p", term("break_even"), class_="note"),
            tag("div", picked.html(), arm.html(), class_="controls"),
            *(figure.html() for figure in figures),
            tag("ul", *(tag("li", line) for line in even), class_="warnings") if even else "",
            details("Every cell", _cell_table(document, grid)),
        ),
        section(
            "Metrics over the grid",
            values.html(Control("metric", "Metric", [label for _, label in known_metrics(grid)])),
        ),
    ]
    parts = [shared.results(cases, "One cell"), shared.phases(cases), shared.latency(cases, {}), shared.drafts(cases)]
    if len(cases.documents) > MOST_CELLS:
        parts = [(section("One cell", tag("p", TOO_MANY)), [])]
    best = _best(document, grid)
    axes = [
        Control(key, axis.label, axis.texts, best[index])
        for index, (key, axis) in enumerate(zip(grid.keys, grid.axes, strict=True))
    ]
    return Page(
        title="specsim: a sweep",
        answer=sweep_answer(document),
        facts=facts(document, [axis.path for axis in grid.axes]),
        sections=[*sections, *(html for html, _ in parts if html)],
        figures=[*figures, values, *(figure for _, own in parts for figure in own)],
        warnings=document["warnings"],
        scenario=scenario_text(document),
        controls=[*axes, Control("slice", "Slice", cases.scope_labels())],
        usd_per_gpu_hour=price_of(document),
    )


def _compared(document: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(arm for cell in document["cells"] for arm in cell["comparison"]))


def _best(document: dict[str, Any], grid: Grid) -> tuple[int, ...]:
    """The cell that shows first: the one that gains most."""

    def most(at: tuple[int, ...]) -> float:
        return max((one["ratio"] or 0.0 for one in grid.cells[at]["speedup"].values()), default=0.0)

    return max(grid.cells, key=most)


def _cell_table(document: dict[str, Any], grid: Grid) -> str:
    rows: list[Row] = []
    for cell in document["cells"]:
        for arm, own in cell["speedup"].items():
            values = texts([cell["values"][axis.path] for axis in grid.axes])
            interval = "" if own["low"] is None else f"[{number_text(own['low'])}, {number_text(own['high'])}]"
            style = own["verdict"] if own["verdict"] in ("better", "worse") else ""
            shown = [
                *values[1:],
                arm,
                f"{number_text(own['ratio'])}x {interval}",
                Cell(VERDICTS.get(own["verdict"], ""), style),
            ]
            rows.append((values[0], shown))
    header = [*(axis.label for axis in grid.axes), "arm", "times better [95 %]", "verdict"]
    return table(header, rows, "Every cell of the sweep")
