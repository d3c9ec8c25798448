"""`specsim explain` as text: one step, the same without speculation beside it."""

from __future__ import annotations

from typing import Any

from .number_text import count_text, number_text
from .part_rows import part_label
from .text_table import text_table


def explain_text(document: dict[str, Any]) -> str:
    """The step as a table, then what comes next and what has to be said."""
    step, plain = document["step"], document["without_speculation"]
    batch, context = document["batch"], document["context_tokens"]
    schedule = "host hidden behind the device" if document["async_scheduling"] else "host and device in series"
    lines = [
        f"One step of arm {document['arm']}: {batch['value']} requests with {step['drafts']} drafts each, "
        f"context {context['value']} tokens",
        f"batch: {batch['source']}; context: {context['source']}; {schedule}",
        "",
        *text_table(("", f"{step['drafts']} drafts", "no drafts", "difference"), _rows(step, plain)),
        "",
        *_next_lines(document),
        *(f"warning: {warning}" for warning in document["warnings"]),
        f"calibration: {document['calibration']['name']} ({document['calibration']['kind']})",
    ]
    return "\n".join(lines) + "\n"


def _rows(step: dict[str, Any], plain: dict[str, Any]) -> list[list[str]]:
    rows = [["rows", count_text(step["rows"]), count_text(plain["rows"]), ""]]
    if (step["graph"], plain["graph"]) != ("none", "none"):
        rows.append(["padded to rows", count_text(step["padded_rows"]), count_text(plain["padded_rows"]), ""])
        rows.append(["graph mode", step["graph"], plain["graph"], ""])
    for name in dict.fromkeys([*plain["parts"], *step["parts"]]):
        ms, plain_ms = step["parts"].get(name, 0.0), plain["parts"].get(name, 0.0)
        rows.append(_ms_row(f"{part_label(name)}, ms", ms, plain_ms))
    rows.append(_ms_row("step, ms", step["step_ms"], plain["step_ms"]))
    for key, label in (
        ("committed_tokens_per_round", "tokens per round"),
        ("ms_per_committed_token", "ms per committed token"),
    ):
        rows.append([label, number_text(step[key]), number_text(plain[key]), ""])
    return rows


def _ms_row(label: str, ms: float, plain_ms: float) -> list[str]:
    difference = ms - plain_ms
    sign = "+" if difference > 0 else ""
    return [label, number_text(ms), number_text(plain_ms), f"{sign}{number_text(difference)}"]


def _next_lines(document: dict[str, Any]) -> list[str]:
    rows, ridge, stair = document["step"]["rows"], document["ridge_rows"], document["next_stair"]
    lines = []
    if ridge is not None:
        side = "bound by computing" if rows > ridge else "bound by reading the weights"
        lines.append(f"ridge point: {number_text(ridge)} rows; this step has {count_text(rows)} and is {side}")
    if stair is not None:
        change = f"{number_text(stair['before_ms'])} -> {number_text(stair['after_ms'])} ms"
        lines.append(
            f"next stair: above {count_text(stair['last_rows'])} rows the dense part goes {change} "
            f"({stair['graph_after']}); before it fit {stair['more_requests']} more requests or "
            f"{stair['more_drafts']} more drafts each"
        )
    return lines
