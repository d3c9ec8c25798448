"""What `specsim run` must show, on shipped scenarios and on a real trace."""

import json
from pathlib import Path

import numpy as np
import pytest

from sim.answers.run import run_scenario
from sim.inputs.errors import InputError, OutsideCalibrationError
from sim.report.json_text import json_text
from sim.report.sentence import answer_sentence

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
TRACE = ROOT.parent / "shared" / "data" / "traces" / "AzureLLMInferenceTrace_conv.csv"
QUICK = ("run.replications=2", "workload.requests=60")

LATENCIES = ("ttft", "tpot", "itl", "e2el", "decode", "queue")
FIELDS = {
    "completed",
    "failed",
    "duration",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "total_token_throughput",
    *(f"{statistic}_{latency}_ms" for statistic in ("mean", "median", "p95", "p99") for latency in LATENCIES),
    *(f"mean_ttft_{part}_ms" for part in ("queue", "prefill", "drafter", "interference")),
    "spec_decode_acceptance_length",
    "spec_decode_acceptance_rate",
    "spec_decode_num_drafts",
    "spec_decode_draft_tokens",
    "spec_decode_accepted_tokens",
    "spec_decode_per_position_acceptance_rates",
    "committed_tokens_per_round",
    "committed_tokens_per_target_pass",
    "target_passes_per_output_token",
    "wasted_draft_tokens",
    "draft_tokens_cut",
    "marginal",
    "draft_length",
    "time_share",
    "graph_mode_share",
    "mean_running",
    "max_running",
    "kv_utilisation",
    "prefix_cache_hit_rate",
    "num_gpu_blocks",
    "preemptions",
    "steps",
    "extrapolated_share",
    "overload",
    "cost",
    "ci",
}


def run(name, *sets, **options):
    return run_scenario(SCENARIOS / f"{name}.yaml", sets, **options).document


def text(document):
    return json_text(document)


def test_the_quickstart_has_every_field_in_both_arms():
    document = run_scenario(None).document
    assert list(document["arms"]) == ["baseline", "speculative"]
    for arm in document["arms"].values():
        assert set(arm) == FIELDS
        assert set(arm["overload"]) == {"detected", "carried_request_rate"}
        assert set(arm["cost"]) == {"usd_per_million_output_tokens", "usd_per_request", "usd_per_successful_task"}
        assert sum(arm["time_share"].values()) == pytest.approx(1)
        parts = sum(arm[f"mean_ttft_{part}_ms"] for part in ("queue", "prefill", "drafter", "interference"))
        assert parts == pytest.approx(arm["mean_ttft_ms"])
        assert arm["completed"] == 2000
    assert set(document["comparison"]) == {"speculative"}
    assert document["comparison"]["speculative"]["mean_tpot_ms"]["verdict"] == "better"
    assert [row["position"] for row in document["arms"]["speculative"]["marginal"]] == [1, 2, 3]
    assert document["arms"]["baseline"]["marginal"] == []
    assert document["arms"]["baseline"]["spec_decode_num_drafts"] is None


def test_the_dashboard_number_is_the_same_in_all_three_and_the_answers_are_not():
    documents = {end: run(f"dashboard-80-percent-{end}") for end in ("cheap-draft", "slow-draft", "large-batch")}
    for document in documents.values():
        arm = document["arms"]["speculative"]
        assert arm["spec_decode_acceptance_rate"] == pytest.approx(80, rel=0.01)
        assert len(arm["spec_decode_per_position_acceptance_rates"]) == 4
    sentences = {end: answer_sentence(document) for end, document in documents.items()}
    assert sentences["cheap-draft"].startswith("Speculation pays")
    assert sentences["slow-draft"].startswith("Speculation does not pay")
    assert sentences["large-batch"].startswith("Speculation loses")
    assert "drafting takes" in sentences["slow-draft"]
    assert "compute-bound" in sentences["large-batch"]
    assert all("a round commits 4.1" in sentence for sentence in sentences.values())


def test_draft_memory_costs_residents():
    document = run("draft-memory")
    baseline, speculative = document["arms"]["baseline"], document["arms"]["speculative"]
    verdicts = {name: row["verdict"] for name, row in document["comparison"]["speculative"].items()}
    assert verdicts["mean_tpot_ms"] == "better"
    assert verdicts["output_throughput"] == verdicts["mean_ttft_ms"] == "worse"
    assert speculative["mean_running"] < 0.6 * baseline["mean_running"]
    assert "draft memory leaves fewer KV blocks" in answer_sentence(document)
    for arm in (baseline, speculative):  # Little's law: residents = throughput x time from admission to completion
        resident_s = (arm["mean_e2el_ms"] - arm["mean_queue_ms"]) / 1e3
        assert arm["mean_running"] == pytest.approx(arm["request_throughput"] * resident_s, rel=0.02)


@pytest.mark.parametrize(("batch", "published"), [(1, 1.73), (128, 1.21)])
def test_the_shipped_calibration_gives_back_its_sources_speedup(batch, published):
    arms = run("calibration-check", f"engine.max_num_seqs={batch}")["arms"]
    speedup = arms["baseline"]["mean_tpot_ms"] / arms["speculative"]["mean_tpot_ms"]
    assert speedup == pytest.approx(published, rel=0.08)


def test_no_drafts_equal_the_baseline_byte_for_byte():
    document = run("quickstart", *QUICK, "speculation.num_speculative_tokens=0")
    assert text(document["arms"]["speculative"]) == text(document["arms"]["baseline"])


def test_the_same_seed_gives_the_same_bytes_in_one_process_or_two():
    one, again = run("quickstart", *QUICK), run("quickstart", *QUICK)
    two = run("quickstart", *QUICK, jobs=2)
    assert text(one) == text(again) == text(two)
    assert text(one["arms"]) != text(run("quickstart", *QUICK, "run.seed=2")["arms"])


def test_another_arm_changes_no_other_arm():
    before = run("quickstart", *QUICK)["arms"]
    after = run("quickstart", *QUICK, "arms={k6: {speculation.num_speculative_tokens: 6}}")["arms"]
    assert list(after) == ["baseline", "speculative", "k6"]
    assert text({name: after[name] for name in before}) == text(before)
    assert len(after["k6"]["spec_decode_per_position_acceptance_rates"]) == 6


def test_traffic_does_not_depend_on_k():
    arms = run("quickstart", *QUICK, "arms={k1: {speculation.num_speculative_tokens: 1}}")["arms"].values()
    assert len({(arm["total_input_tokens"], arm["total_output_tokens"]) for arm in arms}) == 1


def test_a_result_runs_again(tmp_path):
    first = run("quickstart", *QUICK)
    path = tmp_path / "result.json"
    path.write_text(text(first))
    again = run_scenario(path).document
    assert text(again["arms"]) == text(first["arms"])
    assert again["scenario"] == first["scenario"]


def test_one_replication_tests_nothing():
    document = run("quickstart", "run.replications=1", "workload.requests=50")
    assert document["arms"]["baseline"]["ci"] is None
    rows = document["comparison"]["speculative"].values()
    assert all(row["verdict"] == "not_tested" and row["low"] is row["high"] is None for row in rows)


def test_strict_refuses_what_was_not_calibrated():
    crowded = ("workload.arrivals.concurrency=100", "workload.requests=120", "run.replications=1")
    assert run("quickstart", *crowded)["arms"]["baseline"]["extrapolated_share"] > 0
    with pytest.raises(OutsideCalibrationError, match="beyond the range"):
        run("quickstart", *crowded, strict=True)


def test_a_prompt_that_can_never_fit_is_an_error_where_it_stands():
    with pytest.raises(InputError) as caught:
        run("draft-memory", "workload.slices.0.prompt_tokens=200000")
    assert {problem.field for problem in caught.value.problems} == {"workload.slices.0.prompt_tokens"}


def test_draft_memory_that_is_not_known_is_said(tmp_path):
    scenario = json.loads((ROOT / "tests" / "theory" / "oracles.json").read_text())[0]["scenario"]
    del scenario["calibration"]["num_gpu_blocks_baseline"]
    scenario["workload"]["requests"] = 20
    path = tmp_path / "s.json"
    path.write_text(json.dumps(scenario))
    document = run_scenario(path).document
    assert any("draft memory not modelled" in warning for warning in document["warnings"])
    assert document["arms"]["baseline"]["num_gpu_blocks"] == document["arms"]["speculative"]["num_gpu_blocks"]


# --- a real trace --------------------------------------------------------------------------------------------------


def azure(tmp_path, *sets):
    if not TRACE.exists():
        pytest.skip("the Azure trace is not beside the repository")
    path = tmp_path / "azure.yaml"
    path.write_text(
        "calibration: h100-llama-3.1-8b-eagle\n"
        f"workload: {{arrivals: {{kind: trace, path: {TRACE}}}, slices: [{{name: conv, acceptance: "
        "{kind: per_position, conditional: [0.685, 0.647, 0.640]}}]}\n"
        "speculation: {method: eagle, num_speculative_tokens: 3}\n"
    )
    document = run_scenario(path, sets).document
    rows = np.loadtxt(TRACE, delimiter=",", skiprows=1, usecols=(1, 2), dtype=np.int64)
    for arm in document["arms"].values():
        assert arm["completed"] == len(rows) == 19366
        assert arm["total_input_tokens"] == rows[:, 0].sum()
        assert arm["total_output_tokens"] == rows[:, 1].sum()
    return document["arms"]


def test_the_azure_trace_is_carried_as_it_was(tmp_path):
    arms = azure(tmp_path)
    assert not any(arm["overload"]["detected"] for arm in arms.values())
    assert arms["baseline"]["mean_running"] == pytest.approx(11, abs=0.5)


def test_five_times_the_azure_trace_overloads_one_replica_in_both_arms(tmp_path):
    arms = azure(tmp_path, "workload.arrivals.scale=5")
    offered = 5 * 5.53
    for arm in arms.values():
        assert arm["overload"]["detected"]
        assert 0.7 * offered < arm["overload"]["carried_request_rate"] < offered
        assert arm["ci"] is None


def test_two_replicas_carry_five_times_the_azure_trace(tmp_path):
    arms = azure(tmp_path, "workload.arrivals.scale=5", "engine.replicas=2")
    assert not any(arm["overload"]["detected"] for arm in arms.values())
