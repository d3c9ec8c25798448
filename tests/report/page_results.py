"""Results for the tests of the page: small runs, and documents of sweep, tune and capacity made of them."""

from __future__ import annotations

import copy
import json

from sim.answers.run import run_scenario
from sim.report.files import write_run
from sim.report.json_text import json_text

HOSTILE = '</script><img src=x onerror="window.injected=1"><b>&amp;%{y}'
SCENARIO = {
    "calibration": {
        "kind": "affine",
        "target_fixed_ms": 5,
        "target_per_token_us": 60,
        "draft_fixed_ms": 0.8,
        "num_gpu_blocks": 4000,
        "num_gpu_blocks_baseline": 4400,
    },
    "workload": {
        "requests": 24,
        "arrivals": {"kind": "closed", "concurrency": 4},
        "slices": [
            {
                "name": HOSTILE,
                "share": 0.5,
                "prompt_tokens": 64,
                "output_tokens": {"kind": "geometric", "mean": 40},
                "acceptance": {"kind": "iid", "alpha": 0.85},
                "success_rate": 0.9,
            },
            {
                "name": "prose",
                "share": 0.5,
                "prompt_tokens": 64,
                "output_tokens": 30,
                "acceptance": {"kind": "iid", "alpha": 0.05},
                "success_rate": 0.8,
            },
        ],
    },
    "speculation": {"method": "eagle", "num_speculative_tokens": 3},
    "slo": {"ttft_ms": 500, "tpot_ms": 9, "percentile": 95},
    "price": {"usd_per_gpu_hour": 2.0},
    "run": {"seed": 3, "replications": 2},
}


def run_result(folder, sets=(), keep_tables=0, scenario=SCENARIO):
    """A run of the scenario with overrides."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scenario.json"
    path.write_text(json.dumps(scenario), "utf-8")
    return run_scenario(path, sets, keep_tables=keep_tables)


def write_run_with_tables(folder, sets=()):
    """The files of `specsim run --out`."""
    write_run(run_result(folder, sets, keep_tables=10), folder / "out")
    return folder / "out"


def write_document(folder, name, document):
    """A document as the commands write it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json_text(document), "utf-8")
    return path


def header(document, schema):
    """What every document starts with, of a run."""
    keys = ("specsim_version", "seed", "replications", "scenario", "calibration", "warnings")
    return {"schema": schema, **{key: document[key] for key in keys}}


def sweep_document(folder, lengths=(0, 2, 4), loads=(1, 4, 16)):
    """A grid of runs over draft length and concurrency."""
    paths = ("speculation.num_speculative_tokens", "workload.arrivals.concurrency")
    cells = []
    for length in lengths:
        for load in loads:
            values = dict(zip(paths, (length, load), strict=True))
            found = run_result(folder, [f"{path}={value}" for path, value in values.items()]).document
            compared = found["comparison"]
            cells.append(
                {
                    "values": values,
                    "speedup": {arm: own["output_throughput"] for arm, own in compared.items()},
                    "warnings": found["warnings"],
                    "arms": found["arms"],
                    "comparison": compared,
                }
            )
    return {
        **header(found, "specsim-sweep/1"),
        "axes": [{"path": paths[0], "values": list(lengths)}, {"path": paths[1], "values": list(loads)}],
        "speedup": {"metric": "output_throughput", "better": "higher"},
        "break_even": [
            {"arm": "speculative", "path": paths[1], "at": {paths[0]: 4}, "between": [4, 16], "gains": "below"}
        ],
        "cells": cells,
    }


def capacity_document(folder, loads=(1, 4, 16)):
    """Arms at a few loads of a closed loop; the first arm meets nothing."""
    limits = [{"metric": "p95_ttft_ms", "limit_ms": 500.0}, {"metric": "p95_tpot_ms", "limit_ms": 9.0}]
    rows = {}
    for load in loads:
        found = run_result(folder, [f"workload.arrivals.concurrency={load}"]).document
        for name, arm in found["arms"].items():
            slo = {
                one["metric"]: {
                    "value": arm[one["metric"]],
                    **dict(zip(("low", "high"), _bounds(arm, one), strict=True)),
                }
                for one in limits
            }
            row = {key: arm[key] for key in ("output_throughput", "mean_running", "cost")}
            rows.setdefault(name, []).append({"load": load, "meets": load < 16, "slo": slo, **row})
    none = {"answer": "nothing_meets", "highest_load": None, "interval": None, "breaks": None}
    found_one = {
        "answer": "found",
        "highest_load": 4,
        "interval": [3, 5],
        "breaks": {"text": "steps get longer with the batch"},
    }
    arms = {
        name: {
            **(found_one if name == "speculative" else none),
            "output_throughput": own[1]["output_throughput"] if name == "speculative" else None,
            "cost": own[1]["cost"] if name == "speculative" else None,
            "replicas": {"load": 4, "replicas": 1, "cost": own[1]["cost"], "why": None}
            if name == "speculative"
            else {"load": 4, "replicas": None, "cost": None, "why": "no load meets the SLO"},
            "loads": own,
        }
        for name, own in rows.items()
    }
    return {
        **header(found, "specsim-capacity/1"),
        "load": {"path": "workload.arrivals.concurrency", "unit": "users", "offered": 4, "most": 64},
        "slo": {"percentile": 95, "limits": limits},
        "table_loads": list(loads),
        "arms": arms,
    }


def _bounds(arm, limit):
    return (arm["ci"] or {}).get(limit["metric"], (None, None))


def tune_document(folder, loads=(1, 8)):
    """Draft lengths 0 to 2 at two loads, for the mix and a slice; own traffic from a run."""
    own = run_result(folder, ["arms={k1: {speculation.num_speculative_tokens: 1}}"]).document
    arms = {"off": own["arms"]["baseline"], **{name: own["arms"][name] for name in ("speculative", "k1")}}
    gain = {"ratio": 1.3, "low": 1.2, "high": 1.4, "verdict": "better"}
    loss = {"ratio": 0.8, "low": 0.7, "high": 0.9, "verdict": "worse"}
    same = {"ratio": 1.0, "low": 0.9, "high": 1.1, "verdict": "no_difference_shown"}

    def fixed(load, drafts):
        ratio = same if drafts == 0 else gain if load == 1 else loss
        alpha = None if drafts == 0 else 0.2 * drafts
        return {"ratio_to_off": ratio, "break_even_alpha": alpha, "wasted_draft_tokens_per_round": 0.4}

    def at(load):
        rows = [{"position": 1, "p_committed": 0.7, "adds_ms": 1.0, "saves_ms": 2.0 + load, "pays": True}]
        other = {"ratio_to_off": gain, "ratio_to_best": same}
        best = {"num_speculative_tokens": 2, "ties": [1], "output_throughput": 200.0, "ratio_to_off": gain}
        return {
            "concurrency": load,
            "best": best,
            "fixed": [fixed(load, drafts) for drafts in range(3)],
            "schedule": other if load > 1 else None,
            "goodput": other,
            "break_even_acceptance": {"alpha": 0.2, "num_speculative_tokens": 1},
            "marginal": rows,
        }

    def scope(name, kind, even):
        changes = [{"from": 2, "to": 0, "last": 4, "low": 2, "high": 6}]
        schedule = {"ranges": [[1, 4, 2], [5, 256, 0]], "changes": changes}
        return {
            "name": name,
            "kind": kind,
            "break_even_concurrency": even,
            "schedule": schedule,
            "by_concurrency": [at(load) for load in loads],
        }

    row = {
        "effect": "loses",
        "gpu_time_share": 0.5,
        "replica_s_per_million_tokens": 900.0,
        **{key: {"value": 1.0, **loss} for key in ("mean_tpot_ms", "mean_e2el_ms")},
        **{key: {"value": 0.5, **loss} for key in ("usd_per_million_output_tokens", "usd_per_successful_task")},
    }
    text = """--speculative-config '{"method": "eagle", "num_speculative_tokens": 2}'"""
    engines = [
        {"engine": "vLLM", "version": "0.33.0", "text": text, "notes": ["put the draft model in"]},
        {"engine": "llama.cpp", "version": "2026-11", "text": "", "notes": ["has no method eagle"]},
    ]
    return copy.deepcopy(
        {
            **header(own, "specsim-tune/1"),
            "concurrencies": list(loads),
            "draft_lengths": [0, 1, 2],
            "scopes": [
                scope("mix", "mix", {"pays_up_to": 1, "off_from": 8, "num_speculative_tokens": 2}),
                scope(HOSTILE, "slice", {"pays_up_to": None, "off_from": 1, "num_speculative_tokens": None}),
            ],
            "own_traffic": {
                "objective": "output_throughput",
                "arms": arms,
                "comparison": own["comparison"],
            },
            "slices": {HOSTILE: {"off": row, "k2": row}},
            "pools": {"slices": {HOSTILE: {"off": row, "pools": {**row, "effect": "gains"}}}},
            "schedule": {"ranges": [[1, 4, 2], [5, 256, 0]], "recommended": False, "reasons": ["noise"]},
            "recommendation": {
                "kind": "fixed",
                "num_speculative_tokens": 2,
                "ratio_to_off": gain,
                "why": ["it is best"],
            },
            "flags": [{"label": "fixed 2 draft tokens", "recommended": True, "engines": engines}],
        }
    )
