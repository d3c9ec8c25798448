"""The first screen: the answer in one sentence, the tables, the caveats. Plain text where the output is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .capacity_rows import arm_rows, capacity_answer, load_rows
from .number_text import number_text, percent_text
from .sentence import answer_sentence
from .slice_answer import slice_changes, slice_effect, slice_names
from .sweep_rows import MOST_MAPS, MOST_ROWS, HeatMap, break_even_lines, cell_rows, heat_maps, sweep_answer
from .table_rows import Row, marginal_rows, metric_rows, ratio_cells, slice_rows, time_share_rows
from .words import EFFECTS, MARGINAL_COLUMNS

ARMS_A_TABLE = 4  # as many columns of numbers as stay readable at 80 characters
RATIOS_A_TABLE = 2
MOST_SLICES = 8  # tables of slices, those with most requests; result.json has all
RESULTS = "Results"
RATIO = "ratio [95 %]"


def print_answer(document: dict[str, Any], console: Console) -> None:
    """Print a result document."""
    arms = document["arms"]
    _print_text(console, answer_sentence(document), style="bold")
    _print_metrics(console, document)
    _print_slices(console, document)
    for names in _chunks(list(arms), ARMS_A_TABLE):
        shown = {name: arms[name] for name in names}
        _print_table(console, "Share of a request's time, arrival to last token", "", names, time_share_rows(shown))
    for name, arm in arms.items():
        if arm["marginal"]:
            title = f"What each draft token of {name} costs and brings at this load"
            _print_table(console, title, "draft token", MARGINAL_COLUMNS, marginal_rows(arm))
    console.print()
    for caveat in caveats(document):
        _print_text(console, caveat)


SHADES = {-3: "white on #b35806", -2: "black on #f1a340", -1: "black on #fee0b6", 0: ""}
SHADES |= {1: "black on #d1e5f0", 2: "black on #67a9cf", 3: "white on #2166ac"}  # told apart by colour-blind readers


def print_sweep(document: dict[str, Any], console: Console) -> None:
    """Print the cells of a sweep: heat maps where two axes vary, then a row a cell."""
    _print_text(console, sweep_answer(document), style="bold")
    maps = list(heat_maps(document))
    for one in maps[:MOST_MAPS]:
        _print_heat_map(console, one)
    if maps:
        _print_text(console, "(x): slower than the baseline, ~x: no difference shown")
    if len(maps) > MOST_MAPS:
        _print_text(console, f"{len(maps) - MOST_MAPS} more such tables can be made from the JSON result")
    console.print()
    for line in break_even_lines(document):
        _print_text(console, line)
    columns, rows = cell_rows(document)
    _print_table(console, RESULTS, "", columns, rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        _print_text(console, f"{len(rows) - MOST_ROWS} more rows in the JSON result")
    console.print()
    for caveat in caveats(document):
        _print_text(console, caveat)


def print_capacity(document: dict[str, Any], console: Console) -> None:
    """Print what each arm carries, and cost against latency over loads."""
    _print_text(console, capacity_answer(document), style="bold")
    names = list(document["arms"])
    rows = arm_rows(document)
    for start in range(0, len(names), ARMS_A_TABLE):
        part = slice(start, start + ARMS_A_TABLE)
        _print_table(console, RESULTS, "", names[part], [(label, cells[part]) for label, cells in rows])
    columns, lines = load_rows(document)
    if lines:
        _print_table(console, f"Latency and cost at the same loads, {document['load']['unit']}", "load", columns, lines)
    console.print()
    for caveat in caveats(document):
        _print_text(console, caveat)


def _print_heat_map(console: Console, one: HeatMap) -> None:
    console.print()
    _print_text(console, one.title, style="bold")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(Text(one.corner), overflow="fold")
    for column in one.columns:
        table.add_column(Text(column), justify="right", overflow="fold")
    for label, cells in one.rows:
        table.add_row(Text(label), *(Text(cell.text, style=SHADES[cell.level]) for cell in cells))
    console.print(table)


def caveats(document: dict[str, Any]) -> list[str]:
    """The warnings, then where the costs come from and how the run can be repeated."""
    replications = document.get("replications") or document["scenario"].get("run", {}).get("replications", 1)
    calibration = document["calibration"]
    lines = [f"warning: {warning}" for warning in document["warnings"]]
    lines.append(f"calibration: {calibration['name']} ({calibration['kind']}, {_heldout_text(calibration['heldout'])})")
    lines.append(f"specsim {document['specsim_version']}, seed {document['seed']}, replications {replications}")
    return lines


def _heldout_text(heldout: dict[str, Any] | None) -> str:
    if heldout is None:
        return "held-out error not stated"
    p95 = heldout.get("p95_percent")
    tail = "" if p95 is None else f", p95 {number_text(p95)} %"
    return f"held-out error: median {number_text(heldout['median_percent'])} %{tail}"


def _print_metrics(console: Console, document: dict[str, Any]) -> None:
    """Arms as columns; the ratios of a single other arm stand beside them, those of several in tables below."""
    arms, comparison = document["arms"], document["comparison"]
    others = [name for name in arms if name in comparison]
    if len(others) == 1:
        ratios = ratio_cells(comparison[others[0]])
        rows = [(label, [*cells, ratios.get(label, "")]) for label, cells in metric_rows(arms)]
        _print_table(console, RESULTS, "", [*arms, RATIO], rows)
    else:
        for names in _chunks(list(arms), ARMS_A_TABLE):
            _print_table(console, RESULTS, "", names, metric_rows({name: arms[name] for name in names}))
        for names in _chunks(others, RATIOS_A_TABLE):
            columns = [ratio_cells(comparison[name]) for name in names]
            labels = list(dict.fromkeys(label for column in columns for label in column))
            rows = [(label, [column.get(label, "") for column in columns]) for label in labels]
            _print_table(console, "Ratio to the baseline [95 %]", "", names, rows)
    if any(cell.endswith(" ns") for name in others for cell in ratio_cells(comparison[name]).values()):
        _print_text(console, "ns: no difference shown")


def _print_slices(console: Console, document: dict[str, Any]) -> None:
    """A table a slice, all arms; its title says what speculation does to it."""
    arms, comparison = document["arms"], document["comparison"]
    names = slice_names(document)
    for name in names[:MOST_SLICES]:
        title = f"Slice {name}, {percent_text(arms['baseline']['slices'][name]['request_share'])} of the requests"
        if "speculative" in comparison:
            effect, change = slice_effect(slice_changes(document, "speculative", name))
            title += f": {EFFECTS[effect]}" + (f", {change}" if change else "")
        for some in _chunks(list(arms), ARMS_A_TABLE):
            rows = slice_rows({arm: arms[arm] for arm in some}, name)
            columns = some
            if len(arms) == 2 and len(comparison) == 1:
                ratios = ratio_cells(comparison[some[1]]["slices"][name])
                rows, columns = [(label, [*cells, ratios.get(label, "")]) for label, cells in rows], [*some, RATIO]
            _print_table(console, title, "", columns, rows)
    if len(names) > MOST_SLICES:
        _print_text(console, f"{len(names) - MOST_SLICES} more slices in the JSON result")


def _print_table(console: Console, title: str, corner: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    console.print()
    _print_text(console, title, style="bold")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(Text(corner), overflow="fold")
    for column in columns:
        table.add_column(Text(column), justify="right", overflow="fold")
    for label, cells in rows:
        table.add_row(Text(label), *(Text(cell) for cell in cells))
    console.print(table)


def _print_text(console: Console, text: str, style: str = "") -> None:
    """Wrapped on a terminal, one line in a pipe, so that a search finds it whole."""
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def _chunks(names: list[str], size: int) -> list[list[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]
