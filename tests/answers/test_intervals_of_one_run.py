"""`run.intervals: batch_means` gives one run its intervals; by default one run tests nothing."""

import json

from sim.answers.run import run_scenario
from sim.report.sentence import answer_sentence

SCENARIO = {
    "calibration": {"kind": "affine", "target_fixed_ms": 10, "target_per_token_us": 100, "num_gpu_blocks": 100_000},
    "workload": {
        "requests": 3000,
        "arrivals": {"kind": "poisson", "rate": 5},
        "slices": [
            {
                "name": name,
                "share": 0.5,
                "prompt_tokens": 5,
                "output_tokens": {"kind": "geometric", "mean": 15},
                "acceptance": {"kind": "iid", "alpha": alpha},
            }
            for name, alpha in (("code", 0.9), ("chat", 0.4))
        ],
    },
    "speculation": {"method": "eagle", "num_speculative_tokens": 3},
}


def run(tmp_path, scenario=SCENARIO, **settings):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**scenario, "run": settings}))
    return run_scenario(path).document


def test_one_run_has_intervals_where_it_was_asked_for_them(tmp_path):
    plain, batches = run(tmp_path, seed=3), run(tmp_path, seed=3, intervals="batch_means")
    for name, arm in batches["arms"].items():
        other = plain["arms"][name]
        assert other["ci"] is None
        assert {key: arm[key] for key in arm if key not in ("ci", "slices")} == {
            key: other[key] for key in other if key not in ("ci", "slices")
        }
        assert {"mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms"} <= set(arm["ci"])
        assert not {"output_throughput", "p95_e2el_ms", "mean_itl_ms"} & set(arm["ci"])
        for metric, (low, high) in arm["ci"].items():
            assert low <= arm[metric] <= high
        for part in arm["slices"].values():
            assert "mean_e2el_ms" in part["ci"]
    row = batches["comparison"]["speculative"]["mean_tpot_ms"]
    assert row["low"] < row["ratio"] < row["high"] < 1
    assert row["verdict"] == "better"
    assert batches["comparison"]["speculative"]["slices"]["code"]["mean_tpot_ms"]["verdict"] == "better"
    assert batches["comparison"]["speculative"]["output_throughput"]["verdict"] == "not_tested"
    assert plain["comparison"]["speculative"]["mean_tpot_ms"]["verdict"] == "not_tested"
    assert "not tested" in answer_sentence(plain)
    assert "not tested" not in answer_sentence(batches)


def test_what_has_no_interval_is_named(tmp_path):
    warnings = run(tmp_path, intervals="batch_means")["warnings"]
    (few,) = [text for text in warnings if "arm speculative" in text and "too few requests" in text]
    assert "p95_e2el_ms" in few
    assert "mean_e2el_ms" not in few
    assert not [text for text in run(tmp_path)["warnings"] if "no interval" in text]


def test_a_run_without_a_steady_state_has_none(tmp_path):
    """200 requests at twice what can be carried: latencies rise to the end."""
    rush = {**SCENARIO, "engine": {"max_num_seqs": 1}}
    rush["workload"] = {**SCENARIO["workload"], "requests": 600, "arrivals": {"kind": "poisson", "rate": 12}}
    document = run(tmp_path, rush, intervals="batch_means")
    assert document["arms"]["baseline"]["overload"]["detected"]
    assert document["arms"]["baseline"]["ci"] is None
    assert any("no steady state was seen" in text for text in document["warnings"])
