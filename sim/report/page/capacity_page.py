"""The page of `specsim capacity`: the highest load within the SLO for each arm, why it breaks, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..number_text import count_text, number_text
from .capacity_figures import cost_slo_figure, costs_known, highest_figure, limit_label, load_figure
from .cost_figure import COSTS
from .definitions import term
from .figure import Control
from .markup import Cell, Html, Row, details, table, tag
from .page import Page, section
from .result_arms import value_of
from .run_page import facts, price_of, scenario_text

ANSWERS = {"nothing_meets": "no load meets the SLO", "everything_meets": "every load meets it"}


def capacity_page(document: dict[str, Any], folder: Path) -> Page:
    """A capacity's page. folder: not used, the document holds all that its page has."""
    highest, loads, cost = highest_figure(document), load_figure(document), cost_slo_figure(document)
    limits = Control("limit", "Limit", [limit_label(one) for one in document["slo"]["limits"]])
    sections = [
        section(
            "Capacity",
            tag("p", term("slo"), f": {_slo_text(document)}", class_="note"),
            _arm_table(document),
            highest.html() if highest else "",
        ),
        section("Latency against load", loads.html(limits)),
    ]
    if cost is not None:
        picked = Control("cost", "Cost", [label for _, label in costs_known(document)])
        sections.append(section("Cost against SLO", tag("p", term("cost"), class_="note"), cost.html(limits, picked)))
    sections.append(section("Loads", *_load_tables(document)))
    return Page(
        title="specsim: capacity within an SLO",
        answer=capacity_answer(document),
        facts=facts(document, [document["load"]["path"]]),
        sections=sections,
        figures=[figure for figure in (highest, loads, cost) if figure is not None],
        warnings=document["warnings"],
        scenario=scenario_text(document),
        usd_per_gpu_hour=price_of(document),
    )


def capacity_answer(document: dict[str, Any]) -> str:
    """The highest load of each arm and why it breaks; replicas for the load of the scenario."""
    unit = document["load"]["unit"]
    sentences = []
    for name, arm in document["arms"].items():
        if arm["answer"] == "found":
            why = f" ({arm['breaks']['text']})" if arm["breaks"] else ""
            sentences.append(f"{name}: up to {number_text(arm['highest_load'])} {unit}{why}.")
        else:
            sentences.append(f"{name}: {ANSWERS.get(arm['answer'], arm['answer'])}.")
    known = {name: arm["replicas"]["replicas"] for name, arm in document["arms"].items() if arm["replicas"]["replicas"]}
    if known:
        counts = ", ".join(f"{name} {count}" for name, count in known.items())
        sentences.append(f"Replicas for {number_text(document['load']['offered'])} {unit}: {counts}.")
    return f"Within {_slo_text(document)}. " + " ".join(sentences)


def _slo_text(document: dict[str, Any]) -> str:
    return ", ".join(f"{limit_label(one)} ≤ {number_text(one['limit_ms'])} ms" for one in document["slo"]["limits"])


def _arm_table(document: dict[str, Any]) -> Html:
    rows: list[Row] = []
    for name, arm in document["arms"].items():
        bounds = arm["interval"]
        interval = f" [{number_text(bounds[0])}, {number_text(bounds[1])}]" if bounds else ""
        breaks, replicas = arm["breaks"], arm["replicas"]
        why = breaks["text"] if breaks else ANSWERS.get(arm["answer"], "")
        cells: list[Cell] = [
            Cell(f"{number_text(arm['highest_load'])}{interval}"),
            Cell(why, "text wrap"),
            Cell(number_text(arm["output_throughput"])),
            *_costs(arm["cost"]),
            Cell(count_text(replicas["replicas"]) if replicas["replicas"] else (replicas["why"] or "-")),
            *_costs(replicas["cost"])[:1],
        ]
        rows.append((name, cells))
    offered = f"{number_text(document['load']['offered'])} {document['load']['unit']}"
    header = [
        "arm",
        f"highest load, {document['load']['unit']} [95 %]",
        "what breaks it",
        "output tok/s there",
        *(f"$ {label} there" for _, label in COSTS),
        f"replicas for {offered}",
        "$ per successful task with them",
    ]
    return table(header, rows, "Capacity of each arm")


def _costs(cost: dict[str, Any] | None) -> list[Cell]:
    values = [(cost or {}).get(field) for field, _ in COSTS]
    return [Cell(number_text(value), usd=value) for value in values]


def _load_tables(document: dict[str, Any]) -> list[Html]:
    shown = set(document["table_loads"])
    return [
        details(f"{name}: loads of the table", _load_table(document, name, shown), opened=True)
        for name in document["arms"]
    ]


def _load_table(document: dict[str, Any], name: str, shown: set[float]) -> Html:
    limits = document["slo"]["limits"]
    rows: list[Row] = []
    for row in document["arms"][name]["loads"]:
        if row["load"] in shown:
            values = [row["slo"][limit["metric"]]["value"] for limit in limits]
            costs = [value_of(row, field) for field, _ in COSTS]
            cells = [
                Cell("yes" if row["meets"] else "no", "yes" if row["meets"] else "no"),
                *(Cell(number_text(value)) for value in values),
                Cell(number_text(row["output_throughput"])),
                Cell(number_text(row["mean_running"])),
                *(Cell(number_text(cost), usd=cost) for cost in costs),
            ]
            rows.append((number_text(row["load"]), cells))
    header = [
        f"load, {document['load']['unit']}",
        "within SLO",
        *(f"{limit_label(limit)}, ms" for limit in limits),
        "output tok/s",
        "mean running",
        *(f"$ {label}" for _, label in COSTS),
    ]
    return table(header, rows, f"Loads of {name}")
