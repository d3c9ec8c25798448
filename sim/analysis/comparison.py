"""An arm against the baseline, metric by metric, on the same requests in every replication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from .attribution import TTFT_PARTS
from .fields import COST, LATENCIES
from .metrics import ReplicationMetrics
from .replications import field_sample, merged_value
from .statistics import paired_difference_interval

Verdict = Literal["better", "worse", "no_difference_shown", "not_tested"]
Direction = Literal["higher", "lower"]

BETTER: dict[str, Direction] = {
    "request_throughput": "higher",
    "request_goodput": "higher",
    "output_throughput": "higher",
    "total_token_throughput": "higher",
    **{f"{statistic}_{latency}_ms": "lower" for latency in LATENCIES for statistic in ("mean", "median", "p95", "p99")},
    **{f"mean_ttft_{part}_ms": "lower" for part in TTFT_PARTS},
    "committed_tokens_per_round": "higher",
    "committed_tokens_per_target_pass": "higher",
    "target_passes_per_output_token": "lower",
    **dict.fromkeys(COST, "lower"),
}


class Comparison(TypedDict):
    """Arm / baseline with the 95 % interval of the paired difference, and what that shows."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict


def compare_arms(
    arm: Sequence[ReplicationMetrics], baseline: Sequence[ReplicationMetrics], *, overloaded: bool
) -> dict[str, Comparison]:
    """Every metric of `BETTER` that either arm defines; overloaded, one of the two at least: nothing is tested."""
    rows = {metric: _compare(arm, baseline, metric, overloaded) for metric in BETTER}
    return {metric: row for metric, row in rows.items() if row is not None}


def _compare(
    arm: Sequence[ReplicationMetrics], baseline: Sequence[ReplicationMetrics], metric: str, overloaded: bool
) -> Comparison | None:
    value, base = _value(arm, metric), _value(baseline, metric)
    if value is None and base is None:
        return None
    ratio = value / base if value is not None and base else None
    row: Comparison = {"ratio": ratio, "low": None, "high": None, "verdict": "not_tested"}
    field, part = ("cost", metric) if metric in COST else (metric, None)
    arm_sample, base_sample = field_sample(arm, field, part), field_sample(baseline, field, part)
    if overloaded or arm_sample is None or base_sample is None:
        return row
    interval = paired_difference_interval(arm_sample, base_sample)
    if interval is None:
        return row
    if base:
        row["low"], row["high"] = (1 + bound / base for bound in interval)
    row["verdict"] = _verdict(*interval, BETTER[metric])
    return row


def _value(replications: Sequence[ReplicationMetrics], metric: str) -> float | None:
    value = merged_value(replications, "cost" if metric in COST else metric)
    if metric in COST and value is not None:
        value = value[metric]
    return None if value is None else float(value)


def _verdict(low: float, high: float, better: Direction) -> Verdict:
    if low <= 0 <= high:
        return "no_difference_shown"
    return "better" if (low > 0) == (better == "higher") else "worse"
