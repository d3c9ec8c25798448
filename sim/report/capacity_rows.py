"""The answer and the tables of a capacity result as text. Pure functions."""

from __future__ import annotations

from typing import Any

from .number_text import count_text, number_text
from .table_rows import Row

Document = dict[str, Any]
COST_LABELS = {
    "usd_per_million_output_tokens": "$ per 1M output tokens there",
    "usd_per_successful_task": "$ per successful task there",
}


def capacity_answer(document: Document) -> str:
    """What each arm carries within the SLO, and how much more that is than without speculation."""
    arms, unit = document["arms"], document["load"]["unit"]
    parts = []
    baseline = arms["baseline"]["highest_load"]
    for name, arm in arms.items():
        load = arm["highest_load"]
        more = ""
        if name != "baseline" and load is not None and baseline and arms["baseline"]["answer"] == "found":
            more = f" ({number_text(load / baseline)}x)"
        parts.append(f"{name} {_carried(arm)}{more}")
    return f"Within {slo_text(document)}, in {unit}: {'; '.join(parts)}."


def slo_text(document: Document) -> str:
    """`p95 TTFT <= 500 ms and p95 TPOT <= 50 ms`."""
    limits = [
        f"{_metric_text(one['metric'])} <= {number_text(one['limit_ms'])} ms" for one in document["slo"]["limits"]
    ]
    return " and ".join(limits)


def arm_rows(document: Document) -> list[Row]:
    """One column an arm."""
    arms = document["arms"].values()
    rows: list[Row] = [
        ("highest load", [_highest(arm) for arm in arms]),
        ("interval [95 %]", [_interval(arm) for arm in arms]),
        ("first to break", [_limit(arm) for arm in arms]),
        ("because", ["-" if arm["breaks"] is None else arm["breaks"]["text"] for arm in arms]),
        ("output tok/s there", [number_text(arm["output_throughput"]) for arm in arms]),
    ]
    for key, label in COST_LABELS.items():
        costs = [None if arm["cost"] is None else arm["cost"][key] for arm in arms]
        if any(cost is not None for cost in costs):
            rows.append((label, [number_text(cost) for cost in costs]))
    offered = number_text(document["load"]["offered"])
    replicas = [arm["replicas"] for arm in arms]
    texts = [one["why"] if one["replicas"] is None else count_text(one["replicas"]) for one in replicas]
    rows.append((f"replicas for {offered} {document['load']['unit']}", texts))
    return rows


def load_rows(document: Document) -> tuple[list[str], list[Row]]:
    """Columns, and one row for each load of the table and arm: latencies, whether the SLO holds, cost."""
    metrics = [one["metric"] for one in document["slo"]["limits"]]
    others = [metric for metric in ("p95_ttft_ms", "p95_tpot_ms", "p95_e2el_ms") if metric not in metrics]
    columns = ["arm", *(f"{_metric_text(metric)} ms" for metric in [*metrics, *others]), "SLO", "$/1M tok", "$/task"]
    rows = []
    for load in document["table_loads"]:
        for name, arm in document["arms"].items():
            look = next(one for one in arm["loads"] if one["load"] == load)
            cells = [number_text(look["slo"][metric]["value"]) for metric in metrics]
            cells += [number_text(look[metric]) for metric in others]
            cost = look["cost"] or {}
            held = "overload" if look["overload"]["detected"] else "met" if look["meets"] else "missed"
            money = [number_text(cost.get(key)) for key in COST_LABELS]
            rows.append((number_text(load), [name, *cells, held, *money]))
    return columns, rows


def _carried(arm: dict[str, Any]) -> str:
    if arm["answer"] == "nothing_meets":
        return "carries nothing, not even an idle engine keeps to it"
    more = " or more" if arm["answer"] == "everything_meets" else ""
    interval = f" [{', '.join(number_text(end) for end in arm['interval'])}]" if arm["interval"] else ""
    return f"carries {number_text(arm['highest_load'])}{more}{interval}"


def _highest(arm: dict[str, Any]) -> str:
    if arm["answer"] == "nothing_meets":
        return "none"
    return f"{'>= ' if arm['answer'] == 'everything_meets' else ''}{number_text(arm['highest_load'])}"


def _interval(arm: dict[str, Any]) -> str:
    return "-" if arm["interval"] is None else f"[{', '.join(number_text(end) for end in arm['interval'])}]"


def _limit(arm: dict[str, Any]) -> str:
    breaks = arm["breaks"]
    if breaks is None:
        return "-"
    return "overload" if breaks["metric"] is None else _metric_text(breaks["metric"])


def _metric_text(metric: str) -> str:
    """`p95_ttft_ms` as `p95 TTFT`."""
    statistic, latency = metric.removesuffix("_ms").split("_")
    return f"{statistic} {'E2E' if latency == 'e2el' else latency.upper()}"
