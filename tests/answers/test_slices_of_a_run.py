"""Slices through the whole program: they add up to their arm, and one slice has no results of its own."""

import json

import numpy as np
import pytest

from sim.analysis.slices import committed_by_rounds, row_ms
from sim.analysis.timeline import timeline
from sim.answers.run import run_scenario
from sim.report.sentence import answer_sentence


def scenario(**changes):
    def part(name, share, alpha, prompt, rate):
        return {
            "name": name,
            "share": share,
            "prompt_tokens": {"kind": "uniform", "low": 1, "high": prompt},
            "output_tokens": {"kind": "geometric", "mean": 40},
            "acceptance": {"kind": "iid", "alpha": alpha},
            "success_rate": rate,
        }

    return {
        "calibration": {
            "kind": "affine",
            "target_fixed_ms": 8,
            "target_per_token_us": 150,
            "draft_fixed_ms": 0.5,
            "num_gpu_blocks": 90,
            "num_gpu_blocks_baseline": 100,
        },
        "workload": {
            "requests": 150,
            "arrivals": {"kind": "closed", "concurrency": 24},
            "slices": [part("code", 0.6, 0.9, 200, 0.9), part("translation", 0.4, 0.05, 60, 0.8)],
        },
        "speculation": {"method": "eagle", "num_speculative_tokens": 3},
        "slo": {"tpot_ms": 16},
        "price": {"usd_per_gpu_hour": 3},
        "run": {"seed": 5, "replications": 3},
        **changes,
    }


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("slices") / "s.json"
    path.write_text(json.dumps(scenario()))
    return run_scenario(path, keep_tables=3)


@pytest.mark.parametrize("arm", ["baseline", "speculative"])
def test_slices_add_up_to_their_arm(result, arm):
    whole = result.document["arms"][arm]
    parts = list(whole["slices"].values())
    counts = ["completed", "failed", "total_input_tokens", "total_output_tokens", "preemptions"]
    counts += ["wasted_draft_tokens", "draft_tokens_cut"]
    if arm == "speculative":
        counts += ["spec_decode_num_drafts", "spec_decode_draft_tokens", "spec_decode_accepted_tokens"]
        assert whole["preemptions"] > 0  # so that resumed prefills are among them
    for name in counts:
        assert sum(part[name] for part in parts) == whole[name], name
    for name in ("request_share", "output_token_share", "gpu_time_share"):
        assert sum(part[name] for part in parts) == pytest.approx(1)
    assert sum(part["request_goodput"] for part in parts) == pytest.approx(whole["request_goodput"])
    bill = sum(part["cost"]["usd_per_request"] * part["completed"] for part in parts)
    assert bill == pytest.approx(whole["cost"]["usd_per_request"] * whole["completed"])
    for part in parts:
        assert sum(part["time_share"].values()) == pytest.approx(1)


def test_rows_and_tokens_of_the_engine_are_all_attributed(result):
    for table in result.tables:
        records, line = table.records, timeline(table.records)
        assert row_ms(records, table.requests, line, 2).sum() == pytest.approx(line.steps.duration_ms.sum())
        committed = committed_by_rounds(records)
        assert committed.sum() == records.counts.committed_by_rounds
        assert np.all(committed >= records.requests.rounds)  # a round commits a token at least


def test_the_losing_slice_is_found_and_pays_for_its_drafts(result):
    document = result.document
    compared = document["comparison"]["speculative"]["slices"]
    assert compared["code"]["mean_tpot_ms"]["verdict"] == "better"
    assert compared["translation"]["mean_tpot_ms"]["verdict"] == "worse"
    baseline, arm = (document["arms"][name]["slices"]["translation"] for name in ("baseline", "speculative"))
    assert arm["gpu_time_share"] > baseline["gpu_time_share"]
    assert arm["committed_tokens_per_round"] < 1.2 < document["arms"]["speculative"]["committed_tokens_per_round"]
    low, high = arm["ci"]["mean_tpot_ms"]
    assert low < arm["mean_tpot_ms"] < high
    sentence = answer_sentence(document)
    assert "Slice translation loses from speculation" in sentence
    assert "Slice code gains from speculation" in sentence


def test_one_slice_has_no_results_of_its_own(tmp_path):
    path = tmp_path / "s.json"
    alone = scenario()
    alone["workload"]["slices"] = alone["workload"]["slices"][:1]
    alone["workload"]["slices"][0]["share"] = 1.0
    path.write_text(json.dumps(alone))
    document = run_scenario(path).document
    assert "slices" not in document["arms"]["baseline"]
    assert "slices" not in document["comparison"]["speculative"]
