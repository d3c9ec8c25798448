"""The page of `specsim run`: the answer, what it rests on, and where the time goes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..sentence import answer_sentence
from ..terminal import caveats
from . import case_sections as shared
from .case_sections import Part
from .cases import single
from .draft_figures import length_figure
from .figure import Control
from .markup import tag
from .page import Page, section
from .request_tables import request_quantiles
from .run_tables import length_table
from .step_tables import step_series
from .time_figure import replicas_shown, time_figure


def run_page(document: dict[str, Any], folder: Path) -> Page:
    """A run's page. folder: where the result is, and its tables if `--out` wrote them."""
    case = single(document)
    quantiles = {name: found for name in document["arms"] if (found := request_quantiles(folder, name))}
    parts = [
        shared.results(case, "Results"),
        shared.phases(case),
        shared.latency(case, quantiles),
        shared.drafts(case),
        _lengths(document),
        _time(document, folder),
        shared.costs(case),
    ]
    return Page(
        title="specsim: one scenario, with and without speculation",
        answer=answer_sentence(document),
        facts=facts(document),
        sections=[html for html, _ in parts if html],
        figures=[figure for _, own in parts for figure in own],
        warnings=document["warnings"],
        scenario=scenario_text(document),
        controls=[Control("slice", "Slice", case.scope_labels())],
        usd_per_gpu_hour=price_of(document),
    )


def facts(document: dict[str, Any], varied: Sequence[str] = ()) -> str:
    """The traffic, where the costs come from, and how the result is repeated. varied: paths with several values."""
    return ". ".join([_traffic(document, varied), *caveats(document)[len(document["warnings"]) :]]) + "."


def scenario_text(document: dict[str, Any]) -> str:
    """The scenario as text."""
    return json.dumps(document["scenario"], indent=2, ensure_ascii=False)


def price_of(document: dict[str, Any]) -> float | None:
    """The price that a document's costs were computed at; None where they cannot follow another one."""
    price: float | None = (document["scenario"].get("price") or {}).get("usd_per_gpu_hour")
    return price or None


def _traffic(document: dict[str, Any], varied: Sequence[str]) -> str:
    workload = document["scenario"]["workload"]
    arrivals = workload["arrivals"]
    words = [f"Arrivals: {arrivals['kind']}"]
    fixed = [key for key in ("concurrency", "rate", "cv") if f"workload.arrivals.{key}" not in varied]
    words += [f"{key} {arrivals[key]:g}" for key in fixed if arrivals.get(key)]
    if workload.get("requests") and "workload.requests" not in varied:
        words.append(f"{workload['requests']:,} requests a replication")
    return ", ".join(words)


def _lengths(document: dict[str, Any]) -> Part:
    figure = length_figure(document)
    if figure is None:
        return None, []
    tables = [
        html
        for name, arm in document["arms"].items()
        if arm.get("draft_length")
        for html in (tag("h3", name), length_table(arm, f"Draft lengths of {name}"))
    ]
    return section("Draft lengths that were chosen", figure.html(), *tables), [figure]


def _time(document: dict[str, Any], folder: Path) -> Part:
    series = {name: found for name in document["arms"] if (found := step_series(folder, name))}
    figure = time_figure(document, series)
    if figure is None:
        advice = "The tables of the steps are not beside the result: specsim run --out DIR writes them."
        return section("Queue, batch and KV blocks over time", tag("p", advice, class_="note")), []
    replica = Control("replica", "Replica", [str(index + 1) for index in range(replicas_shown(series))])
    return section("Queue, batch and KV blocks over time", figure.html(replica)), [figure]
