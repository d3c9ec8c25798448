"""`specsim acceptance list`, `show` and `fit` as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .number_text import number_text, percent_text
from .text_table import text_table

_BAR = 40


def list_text(entries: Sequence[dict[str, Any]]) -> str:
    """One line a profile."""
    header = ("name", "kind", "shape", "k", "target", "draft", "tasks")
    rows = [
        (
            entry["name"],
            entry["kind"],
            entry["shape"],
            str(entry["fitted_k"] or "varied"),
            entry["target"],
            entry["draft"] or "-",
            ", ".join(task for task in entry["tasks"] if task != "all") or "-",
        )
        for entry in entries
    ]
    return "\n".join(text_table(header, rows, left=len(header))) + "\n"


def show_text(document: dict[str, Any]) -> str:
    """Everything about one law of a profile."""
    law = document["law"]
    drafts = document["fitted_k"] or "varying lengths"
    lines = [
        f"{document['name']}: {document['kind']}, {document['shape']} of {drafts}, task {document['task']}",
        f"target {document['target']}, draft {document['draft'] or '-'}",
        f"tasks {', '.join(document['tasks'])}",
        f"file {document['file']}",
        f"source {document['provenance']['source']}; {document['provenance']['licence']}",
        *(f"- {note}" for note in document["provenance"]["notes"]),
        *_position_lines(document),
        *_spread_lines(law),
        *_observed_lines(law),
        *_length_lines(document["lengths"]),
    ]
    return "\n".join(lines) + "\n"


def _position_lines(document: dict[str, Any]) -> list[str]:
    """Conditional acceptance as bars, with the unconditional survival beside it."""
    given = ", given a match" if document["law"]["form"] == "ngram" else ""
    rows = [
        (str(position), f"{conditional:.3f}", f"{survival:.3f}", "#" * round(_BAR * conditional))
        for position, (conditional, survival) in enumerate(
            zip(document["conditional"], document["survival"], strict=True), start=1
        )
    ]
    header = ("position", "conditional", "unconditional", "")
    table = text_table(header, rows, left=0)
    return ["", f"Acceptance by draft position{given}", *_bars_left(table, [row[-1] for row in rows])]


def _bars_left(table: Sequence[str], bars: Sequence[str]) -> list[str]:
    """Bars start at one column: the table aligns its last column to the right."""
    width = max(len(bar) for bar in bars)
    starts = max(len(line) for line in table) - width
    return [table[0], *(line[:starts].rstrip().ljust(starts) + bar for line, bar in zip(table[1:], bars, strict=True))]


def _spread_lines(law: dict[str, Any]) -> list[str]:
    lines = ["", f"Spread of requests on the logit: {number_text(law['sigma'])}"]
    if law["form"] == "ngram":
        after = f"{law['match_after_match']:.3f} after a match, {law['match_after_none']:.3f} after none"
        return [*lines, f"Look-ups that find a match: {after}"]
    memory, link = law["memory"], law["length_link"]
    lines.append(
        f"Memory on the logit per output position: phi {memory['phi']:g}, sd {number_text(memory['sd'])}"
        if memory
        else "Memory along the output: none"
    )
    if link:
        lines.append(
            f"Correlation of a request's shift with its log output length: {link['correlation']:+.2f} "
            f"(median {number_text(link['median_tokens'])} tokens)"
        )
    return lines


def _observed_lines(law: dict[str, Any]) -> list[str]:
    """What the log shows, beside a simulated log of the law."""
    observed, simulated = law["observed"], law["simulated"]
    if observed is None:
        return []
    names = {
        "tokens_per_round": "tokens per round",
        "request_sd": "sd of request means",
        "length_correlation": "correlation with log length",
        "p10_rounds_per_128_tokens": "rounds per 128 tokens, p10",
        "p90_rounds_per_128_tokens": "rounds per 128 tokens, p90",
    }
    rows = [(name, *_pair(observed[key], simulated and simulated[key])) for key, name in names.items()]
    rows += [
        (f"autocorrelation, lag {lag}", *_pair(value, simulated and simulated["autocorrelation"].get(lag)))
        for lag, value in observed["autocorrelation"].items()
    ]
    sizes = f"{observed['sequences']:,} sequences, {observed['rounds']:,} rounds"
    return ["", f"The log ({sizes}) and the law", *text_table(("", "log", "law"), rows)]


def _pair(log: float | None, law: float | None) -> tuple[str, str]:
    return number_text(log), number_text(law)


def _length_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    header = ("k", "tokens per round", "p10", "p50", "p90", "first position", "rounds with drafts")
    cells = [
        (
            f"{row['num_speculative_tokens']}{'*' if row['beyond_measured_depth'] else ''}",
            f"{row['tokens_per_round']:.3f}",
            *(f"{row[f'{part}_request_tokens_per_round']:.2f}" for part in ("p10", "p50", "p90")),
            number_text(row["first_position_acceptance"]),
            percent_text(row["rounds_with_drafts"]),
        )
        for row in rows
    ]
    beyond = ["* beyond the measured positions: the last rate is held"] if any("*" in row[0] for row in cells) else []
    title = "At other draft lengths, outputs of 256 tokens (p10, p50, p90: means of requests)"
    return ["", title, *text_table(header, cells, left=0), *beyond]
