"""An arm against the baseline, metric by metric, on the same requests in every replication."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

from .attribution import TTFT_PARTS
from .fields import COST, FIELDS, LATENCIES, SLICE_FIELDS, Table
from .metrics import ReplicationMetrics
from .replications import field_sample, merged_value
from .statistics import paired_difference_interval

Verdict = Literal["better", "worse", "no_difference_shown", "not_tested"]
Direction = Literal["higher", "lower"]
Difference = Callable[[str], tuple[float, float] | None]

ROUNDING = 1e-9  # of the baseline's value: sums in another order differ by less, and that is no difference

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
SLICE_BETTER: dict[str, Direction] = {
    "slo_attainment": "higher",
    **{metric: better for metric, better in BETTER.items() if metric in SLICE_FIELDS or metric in COST},
}


class Comparison(TypedDict):
    """Arm / baseline with the 95 % interval of the paired difference, and what that shows."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict


def compare_arms(
    arm: Sequence[ReplicationMetrics],
    baseline: Sequence[ReplicationMetrics],
    *,
    overloaded: bool,
    difference: Difference | None = None,
) -> dict[str, Comparison]:
    """Every metric of `BETTER` that either arm defines; overloaded, one of the two at least: nothing is tested.

    difference: gives the interval of arm - baseline for a metric, if not that over replications.
    """
    difference = difference or _over_replications(arm, baseline, FIELDS)
    return _compared(arm, baseline, BETTER, FIELDS, _untested if overloaded else difference)


def compare_slices(
    arm: Sequence[ReplicationMetrics],
    baseline: Sequence[ReplicationMetrics],
    *,
    overloaded: bool,
    difference: Difference | None = None,
) -> dict[str, Comparison]:
    """The same for one slice: every metric of `SLICE_BETTER`. overloaded: one of the two arms."""
    difference = difference or _over_replications(arm, baseline, SLICE_FIELDS)
    return _compared(arm, baseline, SLICE_BETTER, SLICE_FIELDS, _untested if overloaded else difference)


def _compared(
    arm: Sequence[ReplicationMetrics],
    baseline: Sequence[ReplicationMetrics],
    better: dict[str, Direction],
    table: Table,
    difference: Difference,
) -> dict[str, Comparison]:
    rows = {}
    for metric, direction in better.items():
        value, base = _value(arm, metric, table), _value(baseline, metric, table)
        if value is None and base is None:
            continue
        row: Comparison = {"ratio": None, "low": None, "high": None, "verdict": "not_tested"}
        row["ratio"] = value / base if value is not None and base else None
        interval = difference(metric)
        if interval is not None:
            if base:
                row["low"], row["high"] = (1 + bound / base for bound in interval)
            row["verdict"] = _verdict(*interval, direction, rounding=ROUNDING * abs(base or 0.0))
        rows[metric] = row
    return rows


def _untested(metric: str) -> None:
    return None


def _over_replications(
    arm: Sequence[ReplicationMetrics], baseline: Sequence[ReplicationMetrics], table: Table
) -> Difference:
    """Paired t intervals; None where one of the two does not define the metric in every replication."""

    def difference(metric: str) -> tuple[float, float] | None:
        field, part = ("cost", metric) if metric in COST else (metric, None)
        sample, base_sample = field_sample(arm, field, part, table), field_sample(baseline, field, part, table)
        if sample is None or base_sample is None:
            return None
        return paired_difference_interval(sample, base_sample)

    return difference


def _value(replications: Sequence[ReplicationMetrics], metric: str, table: Table) -> float | None:
    value = merged_value(replications, "cost" if metric in COST else metric, table)
    if metric in COST and value is not None:
        value = value[metric]
    return None if value is None else float(value)


def _verdict(low: float, high: float, better: Direction, rounding: float) -> Verdict:
    if low <= rounding and high >= -rounding:
        return "no_difference_shown"
    return "better" if (low > 0) == (better == "higher") else "worse"
