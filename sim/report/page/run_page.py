"""The page of `specsim run`: the answer, what it rests on, and where the time goes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..number_text import number_text
from ..sentence import answer_sentence
from ..terminal import caveats
from .cost_figure import cost_figure, costs_known
from .definitions import term
from .draft_figures import drafting_arms, length_figure, marginal_figure
from .effect_figure import effect_figure
from .figure import Control, Figure
from .latency_figure import LATENCIES, latency_figure
from .markup import Html, details, joined, tag
from .page import Page, section
from .phase_figures import UNITS, phase_figure, ttft_figure
from .request_tables import request_quantiles
from .result_arms import scope_labels, scopes
from .run_tables import length_table, marginal_table, metric_table, share_table, slice_table
from .step_tables import step_series
from .time_figure import replicas_shown, time_figure


def run_page(document: dict[str, Any], folder: Path) -> Page:
    """A run's page. folder: where the result is, and its tables if `--out` wrote them."""
    parts = [
        _results(document),
        _phases(document),
        _latency(document, folder),
        _drafts(document),
        _lengths(document),
        _time(document, folder),
        _costs(document),
    ]
    sections = [html for html, _ in parts if html]
    figures = [figure for _, own in parts for figure in own]
    caveat = caveats(document)
    warnings = document["warnings"]
    return Page(
        title="specsim: one scenario, with and without speculation",
        answer=answer_sentence(document),
        facts=". ".join([*_traffic(document), *caveat[len(warnings) :]]) + ".",
        sections=sections,
        figures=figures,
        warnings=warnings,
        scenario=json.dumps(document["scenario"], indent=2, ensure_ascii=False),
        controls=[Control("slice", "Slice", scope_labels(document))],
        usd_per_gpu_hour=price_of(document),
    )


def price_of(document: dict[str, Any]) -> float | None:
    """The price that a document's costs were computed at; None where they cannot follow another one."""
    price: float | None = (document["scenario"].get("price") or {}).get("usd_per_gpu_hour")
    return price or None


def panels(keys: str, contents: Iterable[tuple[str, Html]]) -> Html:
    """Contents of which the controls `keys` show one; the first stands where there is no script."""
    return joined(
        tag("div", content, data_panel=keys, data_key=key, hidden=number > 0)
        for number, (key, content) in enumerate(contents)
    )


Part = tuple[Html | None, list[Figure]]


def _traffic(document: dict[str, Any]) -> list[str]:
    workload = document["scenario"]["workload"]
    arrivals = workload["arrivals"]
    details = [f"{key} {number_text(arrivals[key])}" for key in ("concurrency", "rate", "cv") if arrivals.get(key)]
    words = ["arrivals", str(arrivals["kind"]), *details]
    if workload.get("requests"):
        words.append(f"{workload['requests']:,} requests a replication")
    return [", ".join([" ".join(words[:2]), *words[2:]])]


def _results(document: dict[str, Any]) -> Part:
    labels = scope_labels(document)
    tables = panels(
        "slice",
        (
            (str(index), metric_table(document, scope, f"Results, {labels[index]}"))
            for index, scope in enumerate(scopes(document))
        ),
    )
    slices = slice_table(document)
    figure = effect_figure(document)
    intro = tag("p", term("interval", "Intervals"), ": 95 %. ns: no difference shown.", class_="note")
    contents = [intro, tables]
    if slices is not None:
        contents += [tag("h3", "By ", term("slice")), slices]
    if figure is not None:
        contents.append(figure.html())
    return section("Results", *contents), [figure] if figure else []


def _phases(document: dict[str, Any]) -> Part:
    figure, ttft = phase_figure(document), ttft_figure(document)
    labels = scope_labels(document)
    tables = panels(
        "slice",
        (
            (str(index), share_table(document, scope, f"Time shares, {labels[index]}"))
            for index, scope in enumerate(scopes(document))
        ),
    )
    contents = [
        tag("p", term("phase", "How time is divided"), class_="note"),
        figure.html(Control("phase-unit", "Unit", UNITS)),
        details("Shares as a table", tables),
    ]
    if ttft is not None:
        contents += [tag("h3", "Time to first token"), ttft.html()]
    return section("Where the time goes", *contents), [figure, *([ttft] if ttft else [])]


def _latency(document: dict[str, Any], folder: Path) -> Part:
    quantiles = {name: found for name in document["arms"] if (found := request_quantiles(folder, name))}
    figure = latency_figure(document, quantiles)
    metric = Control("latency", "Latency", [label for _, label in LATENCIES])
    words = joined((term(key) for key in ("ttft", "tpot", "itl", "e2e", "decode", "queue", "p95")), ", ")
    return section("Latency distributions", tag("p", words, class_="note"), figure.html(metric)), [figure]


def _drafts(document: dict[str, Any]) -> Part:
    names = drafting_arms(document)
    arms = {name: document["arms"][name] for name in names}
    figure = marginal_figure(arms)
    if figure is None:
        return None, []
    tables = panels(
        "drafting-arm",
        ((str(index), marginal_table(arms[name], f"Draft tokens of {name}")) for index, name in enumerate(names)),
    )
    return section("What each draft token costs and brings", figure.html(Control("drafting-arm", "Arm", names)), tables), [figure]


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


def _costs(document: dict[str, Any]) -> Part:
    figure = cost_figure(document)
    if figure is None:
        return None, []
    picked = Control("cost", "Cost", [label for _, label in costs_known(document)])
    return section("Cost", tag("p", term("cost", "What a cost is"), class_="note"), figure.html(picked)), [figure]
