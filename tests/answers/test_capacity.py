"""Capacity: against exact queueing theory and a grid of runs, and what is told where nothing or everything meets."""

from __future__ import annotations

import json

import pytest

from sim.answers.capacity import capacity
from sim.answers.run import run_scenario
from sim.inputs.errors import InputError
from sim.report.json_text import json_text

A_MS, B_MS, MEAN, ALPHA, DRAFTS = 1.0, 0.02, 1000, 0.7, 3


def scenario(**changes):
    found = {
        "calibration": {
            "kind": "affine",
            "target_fixed_ms": A_MS,
            "target_per_token_us": 1000 * B_MS,
            "num_gpu_blocks": 4_000_000,
            "num_gpu_blocks_baseline": 4_000_000,
        },
        "workload": {
            "requests": 5000,
            "arrivals": {"kind": "poisson", "rate": 25},
            "slices": [
                {
                    "name": "all",
                    "prompt_tokens": 1,
                    "output_tokens": {"kind": "geometric", "mean": MEAN},
                    "acceptance": {"kind": "iid", "alpha": ALPHA},
                    "success_rate": 0.5,
                }
            ],
        },
        "speculation": {"method": "eagle", "num_speculative_tokens": DRAFTS},
        "engine": {"max_num_seqs": 4096, "max_num_batched_tokens": 65536},
        "slo": {"e2el_ms": 2040, "percentile": "mean"},
        "price": {"usd_per_gpu_hour": 3.6},
        "run": {"seed": 11},
    }
    return found | changes


def small(**changes):
    """Steps of 10 ms, outputs of 20 tokens, 8 at a time: a request alone takes 0.2 s."""
    workload = {
        "requests": 400,
        "arrivals": changes.pop("arrivals", {"kind": "poisson", "rate": 20}),
        "slices": [{"name": "all", "prompt_tokens": 1, "output_tokens": 20}],
    }
    options = {
        "calibration": {"kind": "affine", "target_fixed_ms": 10},
        "workload": workload,
        "engine": {"max_num_seqs": 8},
        "slo": {"e2el_ms": 300, "percentile": 95},
        "price": {"usd_per_gpu_hour": 3.6},
        "run": {"seed": 1, "replications": 3},
    } | changes
    return {key: value for key, value in options.items() if value is not None}


def written(tmp_path, data):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(data))
    return path


def exact_rate(drafts, mean_e2el_ms):
    """lam = (q / b) (1 - (a + b) / (q T)): state-dependent processor sharing, q the chance to end in a step."""
    committed = [ALPHA ** (n - 1) * (1 - ALPHA) for n in range(1, drafts + 1)] + [ALPHA**drafts]
    q = sum(p * (1 - (1 - 1 / MEAN) ** n) for n, p in enumerate(committed, start=1))
    b_ms = B_MS * (1 + drafts)
    return 1000 * q / b_ms * (1 - (A_MS + b_ms) / (q * mean_e2el_ms))


@pytest.mark.timeout(900)
def test_the_exact_inverse(tmp_path):
    document = capacity(written(tmp_path, scenario()))
    for name, drafts in (("baseline", 0), ("speculative", DRAFTS)):
        assert document["arms"][name]["highest_load"] == pytest.approx(exact_rate(drafts, 2040), rel=0.03)


def test_a_grid_of_runs_agrees_within_the_interval(tmp_path):
    path = written(tmp_path, small())
    arm = capacity(path)["arms"]["baseline"]
    low, high = arm["interval"]
    assert low <= arm["highest_load"] <= high
    limit = 300
    for load in (0.9 * low, 1.1 * high):
        requests = max(one["requests"] for one in arm["loads"])
        sets = [f"workload.arrivals.rate={load}", f"workload.requests={requests}"]
        run = run_scenario(path, sets).document["arms"]["baseline"]
        meets = run["p95_e2el_ms"] <= limit and not run["overload"]["detected"]
        assert meets == (load < low)


def test_a_look_is_a_run_at_that_load(tmp_path):
    path = written(tmp_path, small())
    for look in capacity(path)["arms"]["baseline"]["loads"]:
        sets = [f"workload.arrivals.rate={look['load']!r}", f"workload.requests={look['requests']}"]
        run = run_scenario(path, sets).document["arms"]["baseline"]
        assert look["slo"]["p95_e2el_ms"]["value"] == run["p95_e2el_ms"]
        assert look["overload"] == run["overload"]
        assert look["cost"] == run["cost"]


def test_an_overloaded_run_never_meets(tmp_path):
    document = capacity(written(tmp_path, small(slo={"tpot_ms": 1000, "percentile": 95})))
    arm = document["arms"]["baseline"]
    assert not any(look["meets"] for look in arm["loads"] if look["overload"]["detected"])
    assert arm["breaks"]["overloaded"]
    assert arm["breaks"]["cause"] == "queue"
    assert arm["highest_load"] == pytest.approx(8 / 0.010 / 20, rel=0.1)  # 8 tokens leave every 10 ms


@pytest.mark.parametrize(
    ("changes", "metric", "cause"),
    [
        ({"slo": {"ttft_ms": 50, "percentile": 90}}, "p90_ttft_ms", "queue"),
        (
            {
                "slo": {"tpot_ms": 14, "percentile": "mean"},
                "engine": {"max_num_seqs": 64},
                "calibration": {"kind": "affine", "target_fixed_ms": 10, "target_per_token_us": 500},
            },
            "mean_tpot_ms",
            "tpot",
        ),
        (
            {"slo": {"e2el_ms": 300, "percentile": 95}, "engine": {"max_num_seqs": 64, "num_gpu_blocks_baseline": 13}},
            "p95_e2el_ms",
            "kv",
        ),
    ],
)
def test_the_reason_why_it_breaks(changes, metric, cause, tmp_path):
    breaks = capacity(written(tmp_path, small(**changes)))["arms"]["baseline"]["breaks"]
    assert (breaks["metric"], breaks["cause"]) == (metric, cause)


def test_users_of_a_closed_loop(tmp_path):
    arrivals = {"kind": "closed", "concurrency": 3}
    document = capacity(written(tmp_path, small(arrivals=arrivals, slo={"e2el_ms": 380, "percentile": "mean"})))
    arm = document["arms"]["baseline"]
    loads = {look["load"]: look["meets"] for look in arm["loads"]}
    assert (loads[arm["highest_load"]], loads[arm["lowest_load_that_fails"]]) == (True, False)
    assert arm["lowest_load_that_fails"] == arm["highest_load"] + 1
    assert 12 <= arm["highest_load"] <= 16  # 16 users and 8 slots: each waits as long as it is served


def test_nothing_and_everything(tmp_path):
    nothing = capacity(written(tmp_path, small(slo={"e2el_ms": 100, "percentile": 95})))["arms"]["baseline"]
    assert (nothing["answer"], nothing["highest_load"], nothing["cost"]) == ("nothing_meets", None, None)
    assert nothing["replicas"]["replicas"] is None
    closed = {"kind": "closed", "concurrency": 3}
    everything = capacity(written(tmp_path, small(arrivals=closed, slo={"tpot_ms": 11, "percentile": 95})))
    arm = everything["arms"]["baseline"]
    assert (arm["answer"], arm["highest_load"], arm["breaks"]) == ("everything_meets", 16, None)


def test_replicas_for_the_rate_of_the_scenario(tmp_path):
    path = written(tmp_path, small(arrivals={"kind": "poisson", "rate": 90}))
    wanted = capacity(path)["arms"]["baseline"]["replicas"]
    assert wanted["load"] == 90
    for count, meets in ((wanted["replicas"], True), (wanted["replicas"] - 1, False)):
        run = run_scenario(path, [f"engine.replicas={count}", "workload.requests=2000"]).document["arms"]["baseline"]
        assert (run["p95_e2el_ms"] <= 300 and not run["overload"]["detected"]) == meets


def test_arms_of_the_scenario_and_processes(tmp_path):
    data = small(arms={"k4": {"speculation.num_speculative_tokens": 4}})
    data["workload"]["slices"][0]["acceptance"] = {"kind": "iid", "alpha": 0.8}
    data["speculation"] = {"method": "eagle", "num_speculative_tokens": 2}
    path = written(tmp_path, data)
    document = capacity(path)
    assert list(document["arms"]) == ["baseline", "speculative", "k4"]
    highest = [arm["highest_load"] for arm in document["arms"].values()]
    assert highest == sorted(highest)  # drafts are free and their rows cost nothing
    costs = [arm["cost"]["usd_per_million_output_tokens"] for arm in document["arms"].values()]
    assert costs == sorted(costs, reverse=True)
    for load in document["table_loads"]:
        assert all(load in [look["load"] for look in arm["loads"]] for arm in document["arms"].values())
    assert json_text(capacity(path, jobs=2)) == json_text(document)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"slo": None}, "slo: there is none"),
        ({"slo": {"deadline_s": 9, "percentile": "mean"}}, "limits no latency"),
        ({"arrivals": {"kind": "at_once"}}, "all requests arrive at once"),
    ],
)
def test_what_has_no_capacity(changes, says, tmp_path):
    with pytest.raises(InputError, match=says):
        capacity(written(tmp_path, small(**changes)))
