"""Slices with replicas of their own: judged for overload and charged by their pool."""

import json

import pytest

from sim.answers.run import run_scenario


def run(tmp_path, requests, rate):
    def part(name, share, alpha):
        length = {"kind": "geometric", "mean": 20}
        return {
            "name": name,
            "share": share,
            "prompt_tokens": 5,
            "output_tokens": length,
            "acceptance": {"kind": "iid", "alpha": alpha},
        }

    scenario = {
        "calibration": {"kind": "affine", "target_fixed_ms": 10, "target_per_token_us": 100},
        "workload": {
            "requests": requests,
            "arrivals": {"kind": "poisson", "rate": rate},
            "slices": [part("code", 0.9, 0.9), part("translation", 0.1, 0.05)],
        },
        "speculation": {"method": "eagle", "num_speculative_tokens": 3},
        "engine": {"max_num_seqs": 4},
        "price": {"usd_per_gpu_hour": 36},
        "run": {"seed": 2, "replications": 2, "warmup": "none"},
        "arms": {
            "pools": {
                "engine.pools": [
                    {"slices": ["code"], "replicas": 1},
                    {"slices": ["translation"], "replicas": 3, "num_speculative_tokens": 0},
                ]
            }
        },
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps(scenario))
    return run_scenario(path).document["arms"]


def test_a_pool_pays_for_its_replicas_and_drafts_by_its_own_length(tmp_path):
    arm = run(tmp_path, 300, 8)["pools"]
    code, translation = (arm["slices"][name] for name in ("code", "translation"))
    bill = {name: part["cost"]["usd_per_request"] * part["completed"] for name, part in arm["slices"].items()}
    assert bill["translation"] == pytest.approx(3 * bill["code"])
    assert sum(bill.values()) == pytest.approx(arm["cost"]["usd_per_request"] * arm["completed"])
    assert sum(bill.values()) == pytest.approx(4 * 36 * arm["duration"] / 3600)
    assert translation["committed_tokens_per_round"] == 1.0
    assert translation["spec_decode_num_drafts"] == 0
    assert code["committed_tokens_per_round"] > 2.5


def test_one_pool_too_few_is_overload(tmp_path):
    """Without pools four replicas would do; one of them alone carries no nine tenths of the requests."""
    arm = run(tmp_path, 1500, 60)["pools"]
    assert arm["overload"]["detected"]
    assert arm["overload"]["carried_request_rate"] < 60
    assert arm["slices"]["translation"]["p95_ttft_ms"] < arm["slices"]["code"]["p95_ttft_ms"] / 10
    assert arm["slices"]["code"]["ci"] is None
