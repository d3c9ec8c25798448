"""`specsim tune` as text: what to set and why, each load, the scenario's own traffic, slices, flags to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..inputs.wording import counted
from .number_text import number_text, percent_text
from .text_table import text_table
from .tune_flags_text import flag_lines

Part = Mapping[str, Any]
OWN_METRICS = (
    ("output_throughput", "tok/s"),
    ("mean_ttft_ms", "TTFT, ms"),
    ("mean_tpot_ms", "TPOT, ms"),
    ("mean_e2el_ms", "E2E, ms"),
    ("p95_e2el_ms", "E2E p95, ms"),
)


def tune_text(document: Mapping[str, Any]) -> str:
    """The whole answer; the JSON result has every number behind it."""
    lines = [recommendation_sentence(document), ""]
    lines += [f"* {reason}" for reason in document["recommendation"]["why"]]
    for scope in document["scopes"]:
        lines += ["", *_scope_lines(scope, document["draft_lengths"])]
    lines += ["", *_own_lines(document), *_slice_lines(document), "", *_schedule_lines(document), ""]
    lines += flag_lines(document["flags"])
    lines += [f"warning: {warning}" for warning in document["warnings"]]
    calibration = document["calibration"]
    lines.append(f"calibration: {calibration['name']} ({calibration['kind']})")
    version, seed = document["specsim_version"], document["seed"]
    lines.append(f"specsim {version}, seed {seed}, replications {document['replications']}")
    return "\n".join(lines) + "\n"


def recommendation_sentence(document: Mapping[str, Any]) -> str:
    """What to set, and what it gives."""
    given = document["recommendation"]
    measure = "output throughput" if document["own_traffic"]["objective"] == "output_throughput" else "mean E2E latency"
    if given["kind"] == "off":
        return "Recommended: no speculation. No draft length is shown to be better on the scenario's traffic."
    gain = f"{_ratio(given['ratio_to_off'])} the {measure} of no speculation"
    if given["kind"] == "fixed":
        return f"Recommended: {counted(given['num_speculative_tokens'], 'draft token')}, {gain}."
    if given["kind"] == "schedule":
        return f"Recommended: the schedule {_ranges(given['schedule'])}, {gain}."
    pools = "; ".join(
        f"{counted(pool['num_speculative_tokens'], 'draft token')} on {counted(pool['replicas'], 'replica')} for "
        f"{', '.join(pool['slices'])}"
        for pool in given["pools"]
    )
    return f"Recommended: pools, {pools}: {gain}."


def _ratio(row: Part) -> str:
    if row["ratio"] is None:
        return "-"
    bounds = "" if row["low"] is None else f" [{number_text(row['low'])}, {number_text(row['high'])}]"
    mark = {"no_difference_shown": " ns", "not_tested": " nt"}.get(row["verdict"], "")
    return f"{number_text(row['ratio'])}x{bounds}{mark}"


def _ranges(ranges: Sequence[Sequence[int]]) -> str:
    return ", ".join(f"{first}-{last}: {drafts}" for first, last, drafts in ranges)


def _scope_lines(scope: Part, lengths: Sequence[int]) -> list[str]:
    title = "All slices together" if scope["kind"] == "mix" else f"Slice {scope['name']} with an engine of its own"
    header = ["users", "best k", "in noise", "tok/s", "over k = 0 [95 %]", "wasted/round", "break-even alpha"]
    header += ["schedule/best", "goodput/best"]
    rows = [_load_row(part) for part in scope["by_concurrency"]]
    return [
        f"{title}: the best draft length by simulated users",
        *text_table(header, rows),
        _off_line(scope["break_even_concurrency"]),
        "",
        "Each draft token: ms that it adds / saves in a round; * where it does not pay",
        *text_table(("users", *(f"token {k}" for k in lengths[1:])), _marginal_rows(scope)),
    ]


def _load_row(part: Part) -> list[str]:
    best, even = part["best"], part["break_even_acceptance"]
    chosen = part["fixed"][best["num_speculative_tokens"]]
    return [
        str(part["concurrency"]),
        str(best["num_speculative_tokens"]),
        ", ".join(map(str, best["ties"])) or "-",
        number_text(best["output_throughput"]),
        _ratio(best["ratio_to_off"]),
        number_text(chosen["wasted_draft_tokens_per_round"]),
        number_text(even["alpha"]) if even else "none pays",
        _ratio({**part["schedule"]["ratio_to_best"], "low": None}),
        _ratio({**part["goodput"]["ratio_to_best"], "low": None}),
    ]


def _off_line(even: Part) -> str:
    if even["pays_up_to"] is None:
        return "Speculation is not shown to pay at any of these loads: leave it off."
    if even["off_from"] is None:
        return f"Speculation pays up to {counted(even['pays_up_to'], 'user')}, the largest load that was simulated."
    return (
        f"Speculation pays up to {counted(even['pays_up_to'], 'user')} (k = {even['num_speculative_tokens']}); "
        f"from {even['off_from']} on it should be off."
    )


def _marginal_rows(scope: Part) -> list[list[str]]:
    last = scope["by_concurrency"][-1]["marginal"]
    rows = [["P(committed)", *(number_text(row["p_committed"]) for row in last)]]
    for part in scope["by_concurrency"]:
        cells = [
            f"{number_text(row['adds_ms'])} / {number_text(row['saves_ms'])}{'' if row['pays'] else ' *'}"
            for row in part["marginal"]
        ]
        rows.append([str(part["concurrency"]), *cells])
    return rows


def _own_lines(document: Mapping[str, Any]) -> list[str]:
    own = document["own_traffic"]
    shown = [name for name in own["arms"] if name != "speculative"]
    rows = [
        [name, *(number_text(own["arms"][name][key]) for key, _ in OWN_METRICS), _ratio(own["ratio_to_off"][name])]
        for name in shown
    ]
    header = ("arm", *(label for _, label in OWN_METRICS), f"{own['objective']} over off [95 %]")
    return ["The scenario's own traffic", *text_table(header, rows), "ns: no difference shown"]


def _slice_lines(document: Mapping[str, Any]) -> list[str]:
    lines = []
    pools = document["pools"]
    for title, rows in (
        ("What the best length for all does to each slice", document["slices"]),
        ("The same in pools, on as many replicas as the shared engine beside them", pools["slices"] if pools else {}),
    ):
        if rows:
            lines += ["", title, *_slice_table(rows)]
    return lines


def _slice_table(rows: Mapping[str, Any]) -> list[str]:
    header = ["slice", "arm", "effect", "TPOT over off", "E2E over off", "GPU time", "replica s per 1M tokens"]
    header += ["$ per 1M tokens", "$ per successful task"]
    table = [
        [
            name,
            arm,
            "" if arm == "off" else row["effect"],
            "" if arm == "off" else _ratio(row["mean_tpot_ms"]),
            "" if arm == "off" else _ratio(row["mean_e2el_ms"]),
            percent_text(row["gpu_time_share"]),
            number_text(row["replica_s_per_million_tokens"]),
            number_text(row["usd_per_million_output_tokens"]["value"]),
            number_text(row["usd_per_successful_task"]["value"]),
        ]
        for name, by_arm in rows.items()
        for arm, row in by_arm.items()
    ]
    return text_table(header, table, left=3)


def _schedule_lines(document: Mapping[str, Any]) -> list[str]:
    schedule = document["schedule"]
    mark = "recommended" if schedule["recommended"] else "not recommended"
    changes = document["scopes"][0]["schedule"]["changes"]
    known = [f"{one['from']} -> {one['to']} drafts between {one['low']} and {one['high']} requests" for one in changes]
    return [
        f"Schedule by batch size, {mark}: {_ranges(schedule['ranges'])}",
        *(f"* {text}" for text in [*known, *schedule["reasons"]]),
    ]
