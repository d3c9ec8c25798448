"""The rows of the report's tables as text: metrics, ratios to the baseline, time shares, marginal draft tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .changes import metric_value
from .number_text import count_text, number_text, percent_text

Arm = dict[str, Any]
Row = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the metric table. `optional` rows are left out where no arm has a value other than 0."""

    field: str
    label: str
    text: Callable[[float | None], str] = number_text
    optional: bool = False


METRICS = (
    Metric("output_throughput", "output throughput, tok/s"),
    Metric("request_throughput", "request throughput, 1/s"),
    Metric("request_goodput", "request goodput, 1/s", optional=True),
    Metric("mean_ttft_ms", "TTFT mean, ms"),
    Metric("p95_ttft_ms", "TTFT p95, ms"),
    Metric("mean_tpot_ms", "TPOT mean, ms"),
    Metric("p95_tpot_ms", "TPOT p95, ms"),
    Metric("p95_itl_ms", "ITL p95, ms"),
    Metric("mean_e2el_ms", "E2E mean, ms"),
    Metric("p95_e2el_ms", "E2E p95, ms"),
    Metric("committed_tokens_per_round", "committed tokens/round"),
    Metric("spec_decode_acceptance_length", "acceptance length"),
    Metric("mean_running", "mean running"),
    Metric("kv_utilisation", "KV utilisation", percent_text),
    Metric("prefix_cache_hit_rate", "prefix cache hits", percent_text, optional=True),
    Metric("num_gpu_blocks", "KV blocks", count_text, optional=True),
    Metric("preemptions", "preemptions", count_text),
    Metric("failed", "failed requests", count_text, optional=True),
    Metric("usd_per_million_output_tokens", "$ per 1M output tokens", optional=True),
    Metric("usd_per_request", "$ per request", optional=True),
    Metric("usd_per_successful_task", "$ per successful task", optional=True),
)

SLICE_METRICS = (
    Metric("mean_tpot_ms", "TPOT mean, ms"),
    Metric("p95_tpot_ms", "TPOT p95, ms"),
    Metric("mean_ttft_ms", "TTFT mean, ms"),
    Metric("p95_e2el_ms", "E2E p95, ms"),
    Metric("committed_tokens_per_round", "committed tokens/round"),
    Metric("slo_attainment", "requests within SLO", percent_text, optional=True),
    Metric("gpu_time_share", "share of GPU time", percent_text),
    Metric("usd_per_successful_task", "$ per successful task", optional=True),
)

PHASES = (
    ("waiting", "waiting"),
    ("prefill", "prefill"),
    ("drafting", "drafting"),
    ("verification", "verification (decode)"),
    ("sampling", "sampling"),
    ("kv_update", "KV update"),
    ("host", "host"),
    ("prefill_interference", "prefill of others"),
)


def metric_rows(arms: dict[str, Arm]) -> list[Row]:
    """One row per metric, one cell per arm; overload rows only where an arm is overloaded."""
    rows = _rows_of(METRICS, arms)
    if any(arm["overload"]["detected"] for arm in arms.values()):
        rates = [arm["overload"]["carried_request_rate"] for arm in arms.values()]
        rows.append(("overloaded", ["yes" if arm["overload"]["detected"] else "no" for arm in arms.values()]))
        rows.append(("carried rate, requests/s", [number_text(rate) for rate in rates]))
    return rows


def slice_rows(arms: dict[str, Arm], name: str) -> list[Row]:
    """The same for one slice, as few rows as tell it apart from the others."""
    return _rows_of(SLICE_METRICS, {arm: result["slices"][name] for arm, result in arms.items()})


def _rows_of(metrics: Sequence[Metric], arms: dict[str, Arm]) -> list[Row]:
    rows = []
    for metric in metrics:
        values = [metric_value(arm, metric.field) for arm in arms.values()]
        if any(values) or not metric.optional:
            rows.append((metric.label, [metric.text(value) for value in values]))
    return rows


def ratio_cells(compared: dict[str, Any]) -> dict[str, str]:
    """Ratio to the baseline with its interval by metric label: `0.617x [0.610, 0.624] ns`, of an arm or a slice."""
    cells = {}
    for metric in (*METRICS, *SLICE_METRICS):
        entry = compared.get(metric.field)
        if entry is not None and entry["ratio"] is not None:
            cells[metric.label] = _ratio_text(entry)
    return cells


def _ratio_text(entry: dict[str, Any]) -> str:
    ratio = f"{number_text(entry['ratio'])}x"
    if entry["low"] is not None and entry["high"] is not None:
        ratio += f" [{number_text(entry['low'])}, {number_text(entry['high'])}]"
    return f"{ratio} ns" if entry["verdict"] == "no_difference_shown" else ratio


def time_share_rows(arms: dict[str, Arm]) -> list[Row]:
    """Share of a request's time by phase, which sum to 100 %; then that of the steps by CUDA graph mode, if known."""
    rows = [(label, [percent_text(arm["time_share"][phase]) for arm in arms.values()]) for phase, label in PHASES]
    modes = [arm.get("graph_mode_share") or {} for arm in arms.values()]
    if any(modes):
        names = ("full", "piecewise", "eager")
        rows += [(f"steps in {name} graphs", [percent_text(one.get(name)) for one in modes]) for name in names[:2]]
        rows.append(("eager steps", [percent_text(one.get(names[2])) for one in modes]))
    return rows


def marginal_rows(arm: Arm) -> list[Row]:
    """One row per draft position: P(committed), what it adds and saves in ms, whether it pays."""
    return [
        (
            str(entry["position"]),
            [
                number_text(entry["p_committed"]),
                number_text(entry["adds_ms"]),
                number_text(entry["saves_ms"]),
                "-" if entry["pays"] is None else "yes" if entry["pays"] else "no",
            ],
        )
        for entry in arm["marginal"]
    ]
