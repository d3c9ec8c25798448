"""Result documents made by hand: consistent by construction, every number of a test's claim visible in the test."""

from __future__ import annotations

import copy

PHASES = ("waiting", "prefill", "drafting", "verification", "sampling", "kv_update", "host", "prefill_interference")


def arm(speculative=False, shares=None, **values):
    """An arm with every field of the contract; `shares` of time, the rest goes to verification."""
    share = dict.fromkeys(PHASES, 0.0) | (shares or {})
    share["verification"] += 1.0 - sum(share.values())
    fields = {
        "completed": 100,
        "failed": 0,
        "duration": 50.0,
        "total_input_tokens": 10_000,
        "total_output_tokens": 20_000,
        "request_throughput": 2.0,
        "request_goodput": None,
        "output_throughput": 400.0,
        "total_token_throughput": 600.0,
    }
    latencies = {"ttft": 50.0, "tpot": 10.0, "itl": 10.0, "e2el": 2040.0, "decode": 1990.0, "queue": 1.0}
    for metric, value in latencies.items():
        fields |= {f"{statistic}_{metric}_ms": value for statistic in ("mean", "median", "p95", "p99")}
    fields |= {f"mean_ttft_{part}_ms": 10.0 for part in ("queue", "prefill", "drafter", "interference")}
    fields |= {
        "spec_decode_acceptance_length": 2.9 if speculative else None,
        "spec_decode_acceptance_rate": 63.3 if speculative else None,
        "spec_decode_num_drafts": 1000 if speculative else None,
        "spec_decode_draft_tokens": 3000 if speculative else None,
        "spec_decode_accepted_tokens": 1900 if speculative else None,
        "spec_decode_per_position_acceptance_rates": [0.8, 0.6, 0.5] if speculative else None,
        "committed_tokens_per_round": 2.9 if speculative else 1.0,
        "marginal": [],
        "time_share": share,
        "mean_running": 4.0,
        "max_running": 4,
        "kv_utilisation": 0.25,
        "num_gpu_blocks": 1000,
        "preemptions": 0,
        "steps": 5000,
        "extrapolated_share": 0.0,
        "overload": {"detected": False, "carried_request_rate": None},
        "cost": {"usd_per_million_output_tokens": None, "usd_per_request": None, "usd_per_successful_task": None},
        "ci": {},
    }
    unknown = set(values) - set(fields)
    assert not unknown, unknown
    return fields | values


def entry(ratio=None, verdict="not_tested", low=None, high=None):
    return {"ratio": ratio, "low": low, "high": high, "verdict": verdict}


def document(arms, comparison=None, replications=1, arrivals=None, warnings=()):
    return copy.deepcopy(
        {
            "schema": "specsim-result/1",
            "specsim_version": "0.1.0",
            "seed": 1,
            "scenario": {
                "workload": {
                    "arrivals": arrivals or {"kind": "closed", "concurrency": 4},
                    "slices": [{"name": "chat", "share": 0.5}, {"name": 'code, "long"', "share": 0.5}],
                },
                "run": {"seed": 1, "replications": replications, "warmup": "auto"},
            },
            "calibration": {"name": "inline", "kind": "affine", "heldout": None},
            "warnings": list(warnings),
            "arms": arms,
            "comparison": comparison or {},
        }
    )


def paying(**options):
    """Speculation at 2.9 tokens a round and 1.79 times the step: TPOT from 6.1 to 3.76 ms."""
    return document(
        {
            "baseline": arm(mean_tpot_ms=6.1, output_throughput=650.0, mean_e2el_ms=1300.0),
            "speculative": arm(
                True,
                {"drafting": 0.21},
                mean_tpot_ms=6.1 * 1.79 / 2.9,
                output_throughput=1050.0,
                mean_e2el_ms=800.0,
                marginal=[
                    {"position": 1, "p_committed": 0.8, "adds_ms": 1.5, "saves_ms": 4.88, "pays": True},
                    {"position": 2, "p_committed": 0.1, "adds_ms": 1.5, "saves_ms": 0.5, "pays": False},
                ],
            ),
        },
        **options,
    )
