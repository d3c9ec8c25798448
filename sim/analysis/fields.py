"""The fields of an arm's result, in their order, each with the rule that merges replications.

A ratio is computed by the same rule within one replication and over several, sum of numerators / sum of denominators,
so that printed counts and printed rates agree.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .attribution import SHARES, TTFT_PARTS

COST = ("usd_per_million_output_tokens", "usd_per_request", "usd_per_successful_task")
GRAPH_MODES = ("full", "piecewise", "eager")
LATENCIES = ("ttft", "tpot", "itl", "e2el", "decode", "queue")


class Merge(Enum):
    """SUM and MAX over replications; MEAN of those in which the field is defined; GIVEN for the arm as a whole."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    GIVEN = "given"


class Ratio(NamedTuple):
    """scale * numerator / denominator, both names of a replication's totals."""

    numerator: str
    denominator: str
    scale: float = 1.0


Rule = Merge | Ratio
Table = dict[str, Rule | dict[str, Rule]]

FIELDS: Table = {
    "completed": Merge.SUM,
    "failed": Merge.SUM,
    "duration": Merge.SUM,
    "total_input_tokens": Merge.SUM,
    "total_output_tokens": Merge.SUM,
    "request_throughput": Ratio("kept_requests", "window_s"),
    "request_goodput": Ratio("kept_good_requests", "window_s"),
    "output_throughput": Ratio("kept_output_tokens", "window_s"),
    "total_token_throughput": Ratio("kept_tokens", "window_s"),
    **{
        f"{statistic}_{latency}_ms": Merge.MEAN
        for latency in LATENCIES
        for statistic in ("mean", "median", "p95", "p99")
    },
    **{f"mean_ttft_{part}_ms": Merge.MEAN for part in TTFT_PARTS},
    "spec_decode_acceptance_length": Ratio("accepted_and_bonus_tokens", "num_drafts"),
    "spec_decode_acceptance_rate": Ratio("accepted_tokens", "draft_tokens", 100.0),
    "spec_decode_num_drafts": Merge.SUM,
    "spec_decode_draft_tokens": Merge.SUM,
    "spec_decode_accepted_tokens": Merge.SUM,
    "spec_decode_per_position_acceptance_rates": Ratio("accepted_at", "num_drafts"),
    "committed_tokens_per_round": Ratio("committed_by_rounds", "rounds"),
    "committed_tokens_per_target_pass": Ratio("output_tokens", "steps"),
    "target_passes_per_output_token": Ratio("target_passes", "output_tokens"),
    "wasted_draft_tokens": Merge.SUM,
    "draft_tokens_cut": Merge.SUM,
    "marginal": Merge.GIVEN,
    "draft_length": Merge.GIVEN,
    "time_share": dict.fromkeys(SHARES, Merge.MEAN),
    "graph_mode_share": dict.fromkeys(GRAPH_MODES, Merge.MEAN),
    "mean_running": Merge.MEAN,
    "max_running": Merge.MAX,
    "kv_utilisation": Merge.MEAN,
    "prefix_cache_hit_rate": Ratio("prefix_cache_hits", "prefix_cache_queries"),
    "num_gpu_blocks": Merge.MAX,
    "preemptions": Merge.SUM,
    "steps": Merge.SUM,
    "extrapolated_share": Merge.MEAN,
    "overload": Merge.GIVEN,
    "cost": {
        "usd_per_million_output_tokens": Ratio("usd", "output_tokens", 1e6),
        "usd_per_request": Ratio("usd", "completed"),
        "usd_per_successful_task": Ratio("usd", "successful_tasks"),
    },
}

SLICE_FIELDS: Table = {
    "completed": Merge.SUM,
    "failed": Merge.SUM,
    "request_share": Ratio("requests", "all_requests"),
    "total_input_tokens": Merge.SUM,
    "total_output_tokens": Merge.SUM,
    "output_token_share": Ratio("output_tokens", "all_output_tokens"),
    "gpu_time_share": Ratio("row_ms", "all_row_ms"),
    "request_goodput": FIELDS["request_goodput"],
    "slo_attainment": Ratio("kept_good_requests", "kept_requests"),
    **{f"{statistic}_{latency}_ms": Merge.MEAN for latency in LATENCIES for statistic in ("mean", "median", "p95")},
    **{f"mean_ttft_{part}_ms": Merge.MEAN for part in TTFT_PARTS},
    **{
        name: FIELDS[name]
        for name in (
            "spec_decode_acceptance_length",
            "spec_decode_acceptance_rate",
            "spec_decode_num_drafts",
            "spec_decode_draft_tokens",
            "spec_decode_accepted_tokens",
            "committed_tokens_per_round",
            "target_passes_per_output_token",
            "wasted_draft_tokens",
            "draft_tokens_cut",
            "time_share",
            "preemptions",
            "cost",
        )
    },
}
