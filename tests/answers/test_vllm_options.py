"""Prefix caching, priority, n-gram and pools as options of a scenario, in whole runs."""

import pytest

from sim.answers.run import run_scenario

SCENARIO = """\
calibration: {kind: affine, target_fixed_ms: 10, target_per_token_us: 100, draft_fixed_ms: 1, num_gpu_blocks: 5000,
  num_gpu_blocks_baseline: 5000}
workload:
  requests: 300
  arrivals: {kind: poisson, rate: 8}
  slices:
    - {name: chat, share: 0.5, prompt_tokens: 512, output_tokens: 20, acceptance: {kind: iid, alpha: 0.8}}
    - {name: batch, share: 0.5, prompt_tokens: 512, output_tokens: 20, acceptance: {kind: iid, alpha: 0.1}}
speculation: {method: eagle, num_speculative_tokens: 4}
engine: {style: vllm, max_num_seqs: 8, max_num_batched_tokens: 1024, block_size: 16}
run: {seed: 3, replications: 1, warmup: none}
"""


def run(tmp_path, *sets):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return run_scenario(path, sets).document["arms"]


@pytest.mark.parametrize("key", ["prefix_caching", "enable_prefix_caching"])
def test_a_shared_prefix_is_computed_once(tmp_path, key):
    shared = [f"workload.slices.{place}.shared_prefix_tokens=256" for place in (0, 1)]
    plain, cached = run(tmp_path), run(tmp_path, f"engine.{key}=true", *shared)
    assert plain["baseline"]["prefix_cache_hit_rate"] is None
    # 300 requests find 256 of 512 tokens, but for the first of each slice; EAGLE drops the last block of a hit.
    assert cached["baseline"]["prefix_cache_hit_rate"] == pytest.approx(298 / 300 * 256 / 512)
    assert cached["speculative"]["prefix_cache_hit_rate"] == pytest.approx(298 / 300 * 240 / 512)
    assert cached["baseline"]["mean_ttft_ms"] < 0.75 * plain["baseline"]["mean_ttft_ms"]
    assert cached["baseline"]["total_output_tokens"] == plain["baseline"]["total_output_tokens"]


def test_a_cache_that_finds_nothing_changes_nothing(tmp_path):
    plain, cached = run(tmp_path), run(tmp_path, "engine.prefix_caching=true")
    for name in plain:
        assert cached[name]["prefix_cache_hit_rate"] == 0
        for field in ("mean_ttft_ms", "p99_itl_ms", "duration", "kv_utilisation", "time_share", "steps"):
            assert cached[name][field] == pytest.approx(plain[name][field])


def test_priority_serves_the_urgent_first(tmp_path):
    crowded = ("workload.arrivals.rate=14", "engine.max_num_seqs=2")
    fair = run(tmp_path, *crowded)["baseline"]["slices"]
    urgent = run(tmp_path, *crowded, "engine.scheduling_policy=priority", "workload.slices.1.priority=1")
    sliced = urgent["baseline"]["slices"]
    assert sliced["chat"]["mean_queue_ms"] < 0.5 * fair["chat"]["mean_queue_ms"]
    assert sliced["batch"]["mean_queue_ms"] > 1.5 * fair["batch"]["mean_queue_ms"]


def test_a_look_up_needs_no_slots_and_no_memory(tmp_path):
    arms = run(tmp_path, "calibration.num_gpu_blocks=40", "speculation.method=ngram")
    assert arms["speculative"]["num_gpu_blocks"] == 5000
    assert arms["speculative"]["committed_tokens_per_round"] > 1.5


def test_pools_serve_their_slices_with_their_own_length(tmp_path):
    pools = "[{slices: [chat]}, {slices: [batch], num_speculative_tokens: 0}]"
    arms = run(tmp_path, f"arms={{pools: {{engine.pools: {pools}}}, two: {{engine.replicas: 2}}}}")
    pools, two = arms["pools"]["slices"], arms["two"]["slices"]
    assert pools["chat"]["committed_tokens_per_round"] == pytest.approx(
        two["chat"]["committed_tokens_per_round"], rel=0.02
    )
    assert pools["batch"]["spec_decode_num_drafts"] == 0
    assert pools["batch"]["committed_tokens_per_round"] == 1
    assert arms["pools"]["marginal"] == []
    assert arms["pools"]["total_output_tokens"] == arms["two"]["total_output_tokens"]


def test_one_pool_for_everything_is_no_pool(tmp_path):
    arms = run(tmp_path, "arms={one: {engine.pools: [{slices: [batch, chat]}]}}")
    assert arms["one"] == arms["speculative"]


def test_closed_traffic_crosses_pools(tmp_path):
    closed = ("workload.arrivals={kind: closed, concurrency: 6}", "workload.requests=60")
    arms = run(tmp_path, *closed, "arms={pools: {engine.pools: [{slices: [chat]}, {slices: [batch]}]}}")
    assert arms["pools"]["completed"] == 60
    assert arms["pools"]["max_running"] <= 6
