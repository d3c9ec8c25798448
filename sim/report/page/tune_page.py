"""The page of `specsim tune`: what to set and why, speed-up over the loads, each draft token, slices, flags to copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..number_text import number_text, percent_text
from ..words import EFFECTS
from . import case_sections as shared
from .cases import Cases, single
from .definitions import term
from .figure import Control
from .markup import Cell, Html, Row, details, joined, table, tag
from .page import Page, section
from .run_page import facts, price_of, scenario_text
from .tune_figures import alpha_figure, tune_gain_figure, tune_map_figure, tune_marginal_figure

MIX = "all slices together"


def tune_page(document: dict[str, Any], folder: Path) -> Page:
    """A tuning's page. folder: not used, the document holds all that its page has."""
    gain, loads_map = tune_gain_figure(document), tune_map_figure(document)
    marginal, alpha = tune_marginal_figure(document), alpha_figure(document)
    load = Control("load", "Concurrency", [str(one) for one in document["concurrencies"]])
    own = _own_traffic(document)
    parts = [shared.results(own, "The scenario's own traffic"), shared.phases(own), shared.latency(own, {})]
    scopes = [MIX if scope["kind"] == "mix" else scope["name"] for scope in document["scopes"]]
    sections = [
        section(
            "What to set", tag("ul", *(tag("li", why) for why in document["recommendation"]["why"])), *_flags(document)
        ),
        section(
            "Speed-up over the loads",
            tag("p", term("break_even"), ", ", term("goodput_policy"), ", ", term("schedule"), class_="note"),
            gain.html(),
            loads_map.html(),
            _per_scope(document, _load_table),
            _per_scope(document, _off_line),
        ),
    ]
    if marginal is not None:
        sections.append(
            section(
                "What each draft token costs and brings", tag("p", term("marginal"), class_="note"), marginal.html(load)
            )
        )
    if alpha is not None:
        sections.append(section("Acceptance that breaks even", alpha.html()))
    sections += _schedule(document)
    sections += _slices(document)
    figures = [figure for figure in (gain, loads_map, marginal, alpha) if figure is not None]
    return Page(
        title="specsim: the draft length for each load",
        answer=tune_answer(document),
        facts=facts(document),
        sections=[*sections, *(html for html, _ in parts if html)],
        figures=[*figures, *(figure for _, found in parts for figure in found)],
        warnings=document["warnings"],
        scenario=scenario_text(document),
        controls=[
            Control("scope", "Simulated users of", scopes),
            Control("slice", "Own traffic of", own.scope_labels()),
        ],
        usd_per_gpu_hour=price_of(document),
    )


def tune_answer(document: dict[str, Any]) -> str:
    """What to set, and what it gives."""
    given = document["recommendation"]
    if given["kind"] == "off":
        return "Recommended: no speculation. No draft length is shown to be better on the scenario's traffic."
    measure = "output throughput" if document["own_traffic"]["objective"] == "output_throughput" else "mean E2E latency"
    gain = f"{ratio_text(given['ratio_to_off'])} the {measure} of no speculation"
    if given["kind"] == "schedule":
        return f"Recommended: the schedule {_ranges(given['schedule'])}, {gain}."
    if given["kind"] == "pools":
        pools = "; ".join(
            f"{one['num_speculative_tokens']} draft tokens for {', '.join(one['slices'])}" for one in given["pools"]
        )
        return f"Recommended: pools, {pools}: {gain}."
    return f"Recommended: {given['num_speculative_tokens']} draft tokens, {gain}."


def ratio_text(row: dict[str, Any]) -> str:
    """A ratio with its interval."""
    if row.get("ratio") is None:
        return "-"
    bounds = "" if row["low"] is None else f" [{number_text(row['low'])}, {number_text(row['high'])}]"
    return f"{number_text(row['ratio'])}x{bounds}" + (" ns" if row["verdict"] == "no_difference_shown" else "")


def _own_traffic(document: dict[str, Any]) -> Cases:
    """The arms on the scenario's own traffic as a result, no speculation as its baseline."""
    own = document["own_traffic"]
    names = [name for name in own["arms"] if name not in ("off", "speculative")]
    return single(
        {
            "arms": {"baseline": own["arms"]["off"], **{name: own["arms"][name] for name in names}},
            "comparison": {name: own["comparison"][name] for name in names},
            "scenario": document["scenario"],
        }
    )


def _per_scope(document: dict[str, Any], content: Any) -> Html:
    return shared.panels(("scope",), ((str(n), content(scope)) for n, scope in enumerate(document["scopes"])))


def _load_table(scope: dict[str, Any]) -> Html:
    rows: list[Row] = []
    for load in scope["by_concurrency"]:
        best, even = load["best"], load["break_even_acceptance"]
        chosen = load["fixed"][best["num_speculative_tokens"]]
        cells = [
            str(best["num_speculative_tokens"]),
            ", ".join(map(str, best["ties"])) or "-",
            number_text(best["output_throughput"]),
            ratio_text(best["ratio_to_off"]),
            number_text(chosen["wasted_draft_tokens_per_round"]),
            number_text(even["alpha"]) if even else "none pays",
            *(ratio_text(load[key]["ratio_to_best"]) if load.get(key) else "-" for key in ("schedule", "goodput")),
        ]
        rows.append((str(load["concurrency"]), cells))
    header = [
        term("concurrency"),
        "best k",
        "within noise",
        "output tok/s",
        "over no speculation [95 %]",
        term("waste", "wasted a round"),
        "break-even acceptance",
        "schedule / best",
        "goodput / best",
    ]
    return table(header, rows, f"The best draft length by load, {scope['name']}")


def _off_line(scope: dict[str, Any]) -> Html:
    even = scope["break_even_concurrency"]
    if even["pays_up_to"] is None:
        return tag("p", "Speculation is not shown to pay at any of these loads.")
    if even["off_from"] is None:
        return tag("p", f"Speculation pays up to {even['pays_up_to']} users, the largest load that was simulated.")
    return tag("p", f"Speculation pays up to {even['pays_up_to']} users; from {even['off_from']} on it should be off.")


def _flags(document: dict[str, Any]) -> list[Html]:
    parts = []
    for number, part in enumerate(document["flags"]):
        mark = "recommended" if part["recommended"] else "not recommended"
        engines = [_engine(engine, f"flags-{number}-{n}") for n, engine in enumerate(part["engines"])]
        parts.append(details(f"Flags, {mark}: {part['label']}", *engines, opened=part["recommended"]))
    return parts


def _engine(engine: dict[str, Any], name: str) -> Html:
    notes = tag("ul", *(tag("li", note) for note in engine["notes"]), class_="note") if engine["notes"] else ""
    text: Html | str = ""
    if engine["text"]:
        copy = tag("button", "Copy", type="button", data_copy=name)
        text = joined((tag("pre", engine["text"], id=name), copy))
    return joined((tag("h3", f"{engine['engine']} {engine['version']}"), text, notes))


def _schedule(document: dict[str, Any]) -> list[Html]:
    schedule = document["schedule"]
    mark = "recommended" if schedule["recommended"] else "not recommended"
    changes = document["scopes"][0]["schedule"]["changes"]
    known = [f"{one['from']} to {one['to']} drafts between {one['low']} and {one['high']} requests" for one in changes]
    rows: list[Row] = [(f"{first} to {last}", [str(drafts)]) for first, last, drafts in schedule["ranges"]]
    return [
        section(
            f"Schedule by batch size, {mark}",
            table(["scheduled requests", "draft tokens"], rows, "Schedule"),
            tag("ul", *(tag("li", line) for line in [*known, *schedule["reasons"]])),
        )
    ]


def _slices(document: dict[str, Any]) -> list[Html]:
    pools = document["pools"]
    parts = [("What the best length for all does to each slice", document["slices"])]
    if pools:
        parts.append(("The same in pools, on as many replicas", pools["slices"]))
    return [section(title, _slice_table(rows, title)) for title, rows in parts if rows]


def _slice_table(by_slice: dict[str, Any], label: str) -> Html:
    rows: list[Row] = []
    for name, by_arm in by_slice.items():
        for arm, row in by_arm.items():
            tokens, task = (row[key]["value"] for key in ("usd_per_million_output_tokens", "usd_per_successful_task"))
            style = {"gains": "better", "loses": "worse"}.get(row["effect"], "")
            cells: list[Cell] = [
                Cell(arm, "text"),
                Cell("" if arm == "off" else EFFECTS.get(row["effect"], row["effect"]), f"text {style}"),
                *(Cell("" if arm == "off" else ratio_text(row[key])) for key in ("mean_tpot_ms", "mean_e2el_ms")),
                Cell(percent_text(row["gpu_time_share"])),
                Cell(number_text(row["replica_s_per_million_tokens"])),
                Cell(number_text(tokens), usd=tokens),
                Cell(number_text(task), usd=task),
            ]
            rows.append((name, cells))
    header = [
        "slice",
        "arm",
        "speculation",
        "TPOT over off",
        "E2E over off",
        "GPU time",
        "replica s per 1M tokens",
        "$ per 1M tokens",
        "$ per successful task",
    ]
    return table(header, rows, label)


def _ranges(ranges: list[list[int]]) -> str:
    return ", ".join(f"{first}-{last}: {drafts}" for first, last, drafts in ranges)
