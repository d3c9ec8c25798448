"""Sections that a run and the picked cell of a sweep have alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .cases import Cases, has_scope
from .cost_figure import cost_figure, costs_known
from .definitions import term
from .draft_figures import drafting_arms, marginal_figure
from .effect_figure import effect_figure
from .figure import Control, Figure, view_key
from .latency_figure import LATENCIES, latency_figure
from .markup import Html, details, joined, tag
from .page import section
from .phase_figures import UNITS, phase_figure, ttft_figure
from .request_tables import Quantiles
from .run_tables import marginal_table, metric_table, share_table, slice_table

Part = tuple[Html | None, list[Figure]]


def panels(keys: Iterable[str], contents: Iterable[tuple[str, Html]]) -> Html:
    """Contents of which the controls `keys` show one; the first stands where there is no script."""
    names = " ".join(keys)
    return joined(
        tag("div", content, data_panel=names, data_key=key, hidden=number > 0)
        for number, (key, content) in enumerate(contents)
    )


def results(cases: Cases, title: str) -> Part:
    """Metrics with their ratios, what happens to each slice, and the ratios as a figure."""
    tables = _by_slice(cases, lambda document, scope, label: metric_table(document, scope, f"{title}, {label}"))
    intro = tag("p", term("interval", "Intervals"), ": 95 %. ns: no difference shown.", class_="note")
    contents = [intro, tables]
    slices = [(view_key(choice), found) for choice, document in cases if (found := slice_table(document)) is not None]
    if slices:
        contents += [tag("h3", "By ", term("slice")), panels(cases.keys, slices) if cases.keys else slices[0][1]]
    figure = effect_figure(cases)
    if figure is not None:
        contents.append(figure.html())
    return section(title, *contents), [figure] if figure else []


def phases(cases: Cases) -> Part:
    """Wall time by phase per slice and arm, and the parts of the time to first token."""
    figure, ttft = phase_figure(cases), ttft_figure(cases)
    tables = _by_slice(cases, lambda document, scope, label: share_table(document, scope, f"Time shares, {label}"))
    contents = [
        tag("p", term("phase", "How time is divided"), class_="note"),
        figure.html(Control("phase-unit", "Unit", UNITS)),
        details("Shares as a table", tables),
    ]
    if ttft is not None:
        contents += [tag("h3", "Time to first token"), ttft.html()]
    return section("Where the time goes", *contents), [figure, *([ttft] if ttft else [])]


def latency(cases: Cases, quantiles: Mapping[str, Quantiles]) -> Part:
    """Latency distributions. quantiles: as `latency_figure` takes them."""
    figure = latency_figure(cases, quantiles)
    metric = Control("latency", "Latency", [label for _, label in LATENCIES])
    words = joined((term(key) for key in ("ttft", "tpot", "itl", "e2e", "decode", "queue", "p95")), ", ")
    return section("Latency distributions", tag("p", words, class_="note"), figure.html(metric)), [figure]


def drafts(cases: Cases) -> Part:
    """The marginal value of each draft position."""
    figure = marginal_figure(cases)
    if figure is None:
        return None, []
    names = drafting_arms(cases)
    tables = panels(
        (*cases.keys, "drafting-arm"),
        (
            (view_key((*choice, index)), marginal_table(document["arms"][name], f"Draft tokens of {name}"))
            for choice, document in cases
            for index, name in enumerate(names)
            if document["arms"].get(name, {}).get("marginal")
        ),
    )
    title = "What each draft token costs and brings"
    return section(title, figure.html(Control("drafting-arm", "Arm", names)), tables), [figure]


def costs(cases: Cases) -> Part:
    """Costs by arm, at the price of the page."""
    figure = cost_figure(cases)
    if figure is None:
        return None, []
    picked = Control("cost", "Cost", [label for _, label in costs_known(cases)])
    return section("Cost", tag("p", term("cost", "What a cost is"), class_="note"), figure.html(picked)), [figure]


def _by_slice(cases: Cases, table: Callable[[dict[str, Any], str | None, str], Html]) -> Html:
    """A table for each case and slice, of which one shows."""
    labels = cases.scope_labels()
    return panels(
        (*cases.keys, "slice"),
        (
            (view_key((*choice, index)), table(document, scope, labels[index]))
            for choice, document in cases
            for index, scope in enumerate(cases.scopes())
            if has_scope(document, scope)
        ),
    )
