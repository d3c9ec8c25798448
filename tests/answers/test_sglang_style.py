"""The style sglang through the whole program: its defaults, its decode stalls, and what every style must give."""

from pathlib import Path

import pytest

from sim.answers.plan import plan_run
from sim.answers.run import run_scenario
from sim.answers.sglang_defaults import chunked_prefill_size, max_running_requests, mem_fraction_static
from sim.inputs.load import load_scenario
from sim.report.json_text import json_text

SCENARIOS = Path(__file__).parents[2] / "scenarios"
QUICK = ("workload.requests=60", "run.replications=2")
SGLANG = ("engine={style: sglang}",)


def settings(*sets):
    """Settings of each arm, and the warnings."""
    plan = plan_run(load_scenario(None, sets))
    return {arm.name: arm.settings for arm in plan.arms}, plan


def test_left_out_limits_are_the_engines_own_and_told():
    arms, plan = settings(*SGLANG)
    assert [arm.max_num_seqs for arm in arms.values()] == [2048, 48]
    for arm in arms.values():
        assert arm.block_size == 1
        assert arm.sglang.chunked_prefill_size == 8192
    told = [text for text in plan.warnings if "the default of style sglang" in text]
    assert any("max_running_requests not given: 2048" in text for text in told)
    assert any("arm speculative: engine.max_running_requests not given: 48" in text for text in told)
    assert any("mem_fraction_static" in text for text in told)
    assert arms["speculative"].lookahead == 4  # beyond the 4 slots of a round of 3 drafts
    assert arms["baseline"].lookahead == 0


def test_the_kv_pool_is_the_static_share_less_the_weights():
    arms, _ = settings(*SGLANG, "engine.mem_fraction_static=0.8")
    memory = plan_memory()
    tokens = int((0.8 * memory.gpu_memory_bytes - memory.target_weight_bytes) // memory.kv_bytes_per_token)
    assert arms["baseline"].num_gpu_blocks == tokens
    arms, _ = settings(*SGLANG, "engine.max_total_tokens=100000", "engine.page_size=16")
    assert arms["speculative"].num_gpu_blocks == 100000 // 16 + 1


def plan_memory():
    return load_scenario(None).calibrations["calibration"].memory


def test_defaults_by_gpu_memory():
    gib = 1 << 30
    assert [chunked_prefill_size(size * gib, 1) for size in (16, 24, 48, 80, 141, 192)] == [
        2048,
        2048,
        4096,
        8192,
        8192,
        16384,
    ]
    assert chunked_prefill_size(None, 48) == 8160
    # 80 GiB: 512 + 12288 + 512 + 128 MiB are kept, and 2048 more for the drafter.
    assert mem_fraction_static(80 * gib, 8192, method=None) == round(1 - 13440 / 81920, 3)
    assert mem_fraction_static(80 * gib, 8192, method="eagle") == round(1 - 15488 / 81920, 3)
    assert mem_fraction_static(80 * gib, 8192, method="draft_model") == round(1 - 19584 / 81920, 3)
    assert max_running_requests(400_000, 8192, speculates=True) == 48
    assert max_running_requests(400_000, 8192, speculates=False) == 4096
    assert max_running_requests(400_000, 131_072, speculates=False) == 2048


def test_common_words_are_understood_and_its_own_win():
    arms, _ = settings("engine={style: sglang, max_num_seqs: 20, max_num_batched_tokens: 4096, block_size: 16}")
    one = arms["speculative"]
    assert (one.max_num_seqs, one.sglang.chunked_prefill_size, one.block_size) == (20, 4096, 16)
    arms, _ = settings(
        "engine={style: sglang, max_num_seqs: 20, max_running_requests: 10, chunked_prefill_size: -1, page_size: 4}"
    )
    one = arms["speculative"]
    assert (one.max_num_seqs, one.sglang.chunked_prefill_size, one.block_size) == (10, None, 4)
    arms, _ = settings("engine={style: sglang, disable_overlap_schedule: false}")
    assert arms["speculative"].async_scheduling
    assert not arms["speculative"].delivers_before_drafting


def test_no_drafts_equal_the_baseline_byte_for_byte():
    arms = run_scenario(None, (*QUICK, *SGLANG, "speculation.num_speculative_tokens=0")).document["arms"]
    assert json_text(arms["speculative"]) == json_text(arms["baseline"])


def test_the_resolved_scenario_runs_again(tmp_path):
    sets = (*QUICK, "arms={sglang: {engine.style: sglang}}")
    for chosen in (sets, (*QUICK, *SGLANG, "arms={vllm: {engine.style: vllm}}")):
        document = run_scenario(None, chosen).document
        path = tmp_path / "result.json"
        path.write_text(json_text(document))
        assert json_text(run_scenario(path).document["arms"]) == json_text(document["arms"])


@pytest.fixture(scope="module")
def documents():
    return run_scenario(SCENARIOS / "sglang-decode-stalls.yaml", ()).document["arms"]


def test_prefill_batches_stall_decodes_and_bring_first_tokens_sooner(documents):
    vllm, sglang = documents["speculative"], documents["sglang"]
    assert sglang["p99_itl_ms"] > 3 * vllm["p99_itl_ms"]
    assert sglang["median_itl_ms"] < 1.05 * vllm["median_itl_ms"]
    assert sglang["mean_tpot_ms"] > vllm["mean_tpot_ms"]
    assert sglang["mean_ttft_ms"] < 0.95 * vllm["mean_ttft_ms"]
    # Why: decodes lose the time to prefills of others, and a prefill shares its steps with no decodes.
    assert sglang["time_share"]["prefill_interference"] > vllm["time_share"]["prefill_interference"]
    assert sglang["mean_ttft_interference_ms"] < vllm["mean_ttft_interference_ms"]
    assert sglang["mean_ttft_queue_ms"] < vllm["mean_ttft_queue_ms"]


def test_shares_sum_to_one(documents):
    for arm in documents.values():
        assert sum(arm["time_share"].values()) == pytest.approx(1)
        parts = sum(arm[f"mean_ttft_{part}_ms"] for part in ("queue", "prefill", "drafter", "interference"))
        assert parts == pytest.approx(arm["mean_ttft_ms"])


def test_short_prompts_one_at_a_time_are_served_alike():
    """A lone user is never stalled by others: only where drafting lies differs, after the prompt or before a round."""
    arms = run_scenario(
        None, (*QUICK, "workload.arrivals={kind: closed, concurrency: 1}", "arms={sglang: {engine.style: sglang}}")
    ).document["arms"]
    assert arms["sglang"]["mean_e2el_ms"] == pytest.approx(arms["speculative"]["mean_e2el_ms"], rel=0.01)
    assert 0 < arms["speculative"]["mean_ttft_ms"] - arms["sglang"]["mean_ttft_ms"] < 2.5  # two narrow passes


def test_a_schedule_and_a_policy_choose_the_draft_length():
    limited = "speculation.num_speculative_tokens_per_batch_size=[[1, 4, 3], [5, 64, 0]]"
    arm = run_scenario(None, (*QUICK, *SGLANG, limited)).document["arms"]["speculative"]
    assert arm["spec_decode_num_drafts"] > 0
    assert 1 < arm["committed_tokens_per_round"] < 2
    arm = run_scenario(None, (*QUICK, *SGLANG, "speculation.policy=goodput")).document["arms"]["speculative"]
    assert arm["completed"] == 120
