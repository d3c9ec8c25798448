"""`specsim calibrate list` and `show` as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .number_text import count_text, number_text
from .part_rows import part_label
from .step_plot import step_plot_lines
from .text_table import text_table


def list_text(entries: Sequence[dict[str, Any]]) -> str:
    """One line a calibration."""
    header = ("name", "kind", "form", "target", "draft", "GPU", "held-out error")
    rows = [
        (
            entry["name"],
            entry["kind"],
            entry["form"],
            entry["target"],
            entry["draft"] or "-",
            f"{entry['gpus_per_replica']} x {entry['gpu']}",
            heldout_text(entry["heldout"]),
        )
        for entry in entries
    ]
    return "\n".join(text_table(header, rows, left=len(header))) + "\n"


def heldout_text(heldout: dict[str, Any] | None) -> str:
    """The error on cells that were not fitted."""
    if heldout is None:
        return "not stated"
    p95 = heldout["p95_percent"]
    return f"median {number_text(heldout['median_percent'])} %" + ("" if p95 is None else f", p95 {number_text(p95)} %")


def fold_lines(folds: dict[str, dict[str, Any]]) -> list[str]:
    """Errors by the way in which cells were held out."""
    if not folds:
        return []
    header = ("held out, error in %", "cells", "median", "p95", "max", "bias")
    names = ("median_percent", "p95_percent", "max_percent", "bias_percent")
    rows = [
        (name.replace("_", " "), count_text(fold["cells"]), *(number_text(fold[one]) for one in names))
        for name, fold in folds.items()
    ]
    return ["", *text_table(header, rows)]


def show_text(document: dict[str, Any]) -> str:
    """Everything about one calibration."""
    curve = document["curve"]
    marks = ", ^ captured sizes" if curve["capture_sizes"] else ""
    lines = [
        f"{document['name']}: {document['kind']}, {document['form']}",
        f"target {document['target']}, draft {document['draft'] or '-'}, "
        f"{document['gpus_per_replica']} x {document['gpu']}",
        f"held-out error {heldout_text(document['heldout'])}",
        f"file {document['file']}, sha256 {document['sha256'][:12]}",
        *_provenance_lines(document["provenance"]),
        *_step_lines(document["steps"]),
        *_additivity_lines(document["additivity"]),
        *fold_lines(document["heldout_folds"]),
        *_memory_lines(document["memory"]),
        "",
        f"Step time, ms, against rows: no drafts, context {curve['context_tokens']}{marks}",
        *step_plot_lines(curve),
    ]
    return "\n".join(lines) + "\n"


def _provenance_lines(provenance: dict[str, Any]) -> list[str]:
    lines = ["", f"Source: {provenance['source']}", f"Date: {provenance['date']}", f"Licence: {provenance['licence']}"]
    for key, title in (("measured", "Measured"), ("not_measured", "Not measured"), ("notes", "Notes")):
        if provenance[key]:
            lines += ["", title, *(f"- {entry}" for entry in provenance[key])]
    return lines


def _step_lines(steps: Sequence[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for step in steps for name in step["parts"]))
    header = ["batch", "drafts", "rows", "padded", "graph", *map(part_label, names), "step"]
    rows = [
        [
            str(step["batch"]),
            str(step["drafts"]),
            str(step["rows"]),
            str(step["padded_rows"]),
            step["graph"],
            *(number_text(step["parts"].get(name)) for name in names),
            number_text(step["step_ms"]) + ("*" if step["extrapolated"] else " "),
        ]
        for step in steps
    ]
    title = f"Steps taken apart, ms (context {steps[0]['context_tokens']})"
    beyond = ["* beyond what was calibrated"] if any(step["extrapolated"] for step in steps) else []
    return ["", title, *text_table(header, rows, left=0), *beyond]


def _additivity_lines(additivity: dict[str, Any] | None) -> list[str]:
    if additivity is None:
        return ["", "Additivity: the file has no whole steps to hold the sum of terms against."]
    rows = [
        [
            *(str(step[key]) for key in ("batch", "query", "context")),
            number_text(step["ms"]),
            number_text(step["sum_ms"]),
            f"{step['error_percent']:+.1f} %",
        ]
        for step in additivity["steps"]
    ]
    median = f"median {additivity['median_error_percent']:+.1f} %"
    header = ("batch", "query", "context", "whole", "sum", "error")
    return ["", f"Additivity, ms: the sum of terms against whole steps, {median}", *text_table(header, rows, left=0)]


def _memory_lines(memory: dict[str, Any] | None) -> list[str]:
    if memory is None:
        return ["", "Memory: not known, so KV blocks are not derived."]
    labels = {
        "gpu_memory_bytes": "GPU memory",
        "target_weight_bytes": "target weights",
        "draft_weight_bytes": "draft weights",
        "reserve_bytes": "reserve",
    }
    rows = [(label, f"{memory[key] / 2**30:.2f} GiB") for key, label in labels.items()]
    rows += [
        ("KV per token", f"{count_text(memory['kv_bytes_per_token'])} B"),
        ("draft KV per token", f"{count_text(memory['draft_kv_bytes_per_token'])} B"),
        ("KV blocks without draft", count_text(memory["num_gpu_blocks_baseline"])),
        ("KV blocks with draft", count_text(memory["num_gpu_blocks"])),
    ]
    settings = f"utilisation {memory['gpu_memory_utilization']:g}, blocks of {memory['block_size']} tokens"
    return ["", f"Memory of one GPU ({settings})", *text_table(rows[0], rows[1:])]
