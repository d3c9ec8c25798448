"""The tables of a run: metrics with ratios, time shares, draft tokens, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..changes import metric_value
from ..number_text import number_text, percent_text
from ..slice_answer import slice_changes, slice_effect, slice_names
from ..table_rows import METRICS, SLICE_METRICS, Metric, marginal_rows, ratio_cells, time_share_rows
from ..words import EFFECTS, MARGINAL_COLUMNS
from .cost_figure import COSTS
from .definitions import term
from .draft_figures import conditional
from .markup import Cell, Content, Html, Row, table
from .result_arms import Arm, compared_part, part_of

_TERMS = {
    "output_throughput": "throughput",
    "request_throughput": "throughput",
    "request_goodput": "goodput",
    "mean_ttft_ms": "ttft",
    "mean_tpot_ms": "tpot",
    "p95_itl_ms": "itl",
    "mean_e2el_ms": "e2e",
    "committed_tokens_per_round": "committed",
    "spec_decode_acceptance_length": "acceptance_length",
    "kv_utilisation": "kv",
    "preemptions": "preemption",
    "usd_per_successful_task": "task",
    "usd_per_request": "cost",
    "slo_attainment": "slo",
    "p95_tpot_ms": "p95",
}
_VERDICTS = {"better": "better", "worse": "worse"}
_COST_FIELDS = {field for field, _ in COSTS}


def metric_table(document: dict[str, Any], scope: str | None, label: str) -> Html:
    """One row a metric, a column an arm and, for each compared arm, its ratio."""
    arms = {name: part_of(arm, scope) for name, arm in document["arms"].items()}
    compared = {name: compared_part(own, scope) for name, own in document["comparison"].items()}
    header: list[Content] = [
        "",
        *arms,
        *("ratio [95 %]" if len(compared) == 1 else f"{name}, ratio [95 %]" for name in compared),
    ]
    metrics = METRICS if scope is None else SLICE_METRICS
    rows = [row for metric in metrics if (row := _metric_row(metric, arms, compared)) is not None]
    return table(header, [*rows, *_overload_rows(arms)], label)


def _metric_row(metric: Metric, arms: dict[str, Arm], compared: dict[str, Any]) -> Row | None:
    values = [metric_value(arm, metric.field) for arm in arms.values()]
    if metric.optional and not any(values):
        return None
    usd = metric.field in _COST_FIELDS
    cells = [Cell(metric.text(value), usd=value if usd else None) for value in values]
    ratios = [_ratio(metric, own) for own in compared.values()]
    name = _TERMS.get(metric.field)
    return (term(name, metric.label) if name else metric.label), [*cells, *ratios]


def _ratio(metric: Metric, compared: dict[str, Any]) -> Cell:
    text = ratio_cells({metric.field: compared[metric.field]} if metric.field in compared else {})
    verdict = (compared.get(metric.field) or {}).get("verdict", "")
    return Cell(text.get(metric.label, ""), _VERDICTS.get(verdict, ""))


def _overload_rows(arms: dict[str, Arm]) -> list[Row]:
    if not any((arm.get("overload") or {}).get("detected") for arm in arms.values()):
        return []
    told = [arm["overload"] for arm in arms.values()]
    return [
        (term("overload", "overloaded"), ["yes" if one["detected"] else "no" for one in told]),
        ("carried rate, requests/s", [number_text(one["carried_request_rate"]) for one in told]),
    ]


def slice_table(document: dict[str, Any]) -> Html | None:
    """One row a slice: its share and what speculation does to it; None where there is one slice."""
    names = slice_names(document)
    if not names or "speculative" not in document["comparison"]:
        return None
    rows: list[Row] = []
    for name in names:
        effect, change = slice_effect(slice_changes(document, "speculative", name))
        baseline = document["arms"]["baseline"]["slices"][name]
        own = document["arms"]["speculative"]["slices"][name]
        style = {"gains": "better", "loses": "worse"}.get(effect, "")
        cells: list[Content | Cell] = [
            percent_text(baseline["request_share"]),
            percent_text(own["gpu_time_share"]),
            number_text(own["committed_tokens_per_round"]),
            Cell(EFFECTS[effect], f"text {style}"),
            Cell(str(change) if change else "", "text"),
        ]
        rows.append((name, cells))
    header = ["", "requests", "GPU time", "tokens per round", "speculation", "by"]
    return table(header, rows, "What speculation does to each slice")


def share_table(document: dict[str, Any], scope: str | None, label: str) -> Html:
    """Share of a request's time by phase."""
    arms = {name: part_of(arm, scope) for name, arm in document["arms"].items()}
    return table(["", *arms], [(name, cells) for name, cells in time_share_rows(arms)], label)


def marginal_table(arm: Arm, label: str) -> Html:
    """One row a draft position: what it adds and saves, and how often it is accepted."""
    rates = arm.get("spec_decode_per_position_acceptance_rates") or []
    known = dict(enumerate(zip(rates, conditional(rates), strict=True), 1))
    rows: list[Row] = []
    for position, cells in marginal_rows(arm):
        *numbers, pays = cells
        accepted, given = known.get(int(position), (None, None))
        shown: Sequence[Content | Cell] = [*numbers, Cell(pays, pays), number_text(accepted), number_text(given)]
        rows.append((position, shown))
    header: list[Content] = [
        term("marginal", "draft token"),
        *MARGINAL_COLUMNS,
        term("per_position", "accepted, unconditional"),
        "accepted, conditional",
    ]
    return table(header, rows, label)


def length_table(arm: Arm, label: str) -> Html:
    """One row a draft length that a schedule or policy chose."""
    rows: list[Row] = [
        (
            str(row["drafts"]),
            [
                percent_text(row["time_share"]),
                number_text(row["mean_decode_rows"]),
                number_text(row["drafting_ms_per_step"]),
            ],
        )
        for row in arm["draft_length"]
    ]
    header = ["draft length", "share of time", "mean decode rows", "drafting, ms a step"]
    return table(header, rows, label)
