"""Schedules and policies in whole runs: what they are keyed on, what reaching 0 costs, and when a fixed length wins."""

import pytest

from sim.answers.run import run_scenario
from sim.engine.policies import schedule_lookup

SCENARIO = """\
calibration: {kind: affine, target_fixed_ms: 10, target_per_token_us: 150, draft_fixed_ms: 1, num_gpu_blocks: 100000,
  num_gpu_blocks_baseline: 100000}
workload:
  requests: 160
  arrivals: {kind: closed, concurrency: 16}
  slices:
    - {name: chat, prompt_tokens: 50, output_tokens: 60, acceptance: {kind: iid, alpha: 0.8}}
speculation: {method: eagle, num_speculative_tokens: 4}
engine: {style: vllm, max_num_seqs: 64, max_num_batched_tokens: 4096, block_size: 16}
run: {seed: 3, replications: 3}
"""

SCHEDULE = "speculation.num_speculative_tokens_per_batch_size"


def run(tmp_path, *sets):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return run_scenario(path, sets, keep_tables=3)


def document(tmp_path, *sets):
    return run(tmp_path, *sets).document


def test_gaps_and_the_tail_carry_the_previous_length_on():
    assert schedule_lookup([[1, 2, 3], [5, 6, 9]], 6) == (0, 3, 3, 3, 3, 6)


def test_the_length_is_keyed_on_scheduled_requests(tmp_path):
    """A step of more than 8 requests, prompts included, proposes nothing; what was proposed before is verified."""
    open_traffic = "workload.arrivals={kind: poisson, rate: 14}"
    tables = run(tmp_path, f"{SCHEDULE}=[[1, 8, 4], [9, 64, 0]]", open_traffic).tables
    steps = next(table for table in tables if table.name == "speculative").records.steps[0]
    scheduled = steps.decode_rows + steps.prefill_rows
    assert set(scheduled.tolist()) > {7, 8, 9, 10}
    assert (steps.proposed_drafts == (scheduled <= 8) * 4).all()
    decodes_only = (steps.prefill_rows[1:] == 0) & (steps.decode_rows[1:] <= scheduled[:-1])
    verified = steps.draft_tokens[1:] / steps.decode_rows[1:].clip(1)
    assert (verified[decodes_only] == steps.proposed_drafts[:-1][decodes_only]).all()


def test_reaching_zero_pays_the_first_pass_and_keeps_the_memory(tmp_path):
    off = f"{SCHEDULE}=[[1, 64, 0]]"
    arms = document(tmp_path, off, "workload.arrivals.concurrency=4", "calibration.num_gpu_blocks=900")["arms"]
    baseline, arm = arms["baseline"], arms["speculative"]
    assert arm["spec_decode_num_drafts"] == 0
    assert [row["drafts"] for row in arm["draft_length"]] == [0]
    assert arm["draft_length"][0]["drafting_ms_per_step"] == pytest.approx(1.0)
    step_ms = baseline["mean_tpot_ms"]
    assert arm["mean_tpot_ms"] == pytest.approx(step_ms + 1.0, rel=0.01)
    assert arm["num_gpu_blocks"] == 900
    assert baseline["num_gpu_blocks"] == 100000


def test_a_fixed_length_that_is_better_is_recommended(tmp_path):
    bad = document(tmp_path, f"{SCHEDULE}=[[1, 2, 4], [3, 64, 0]]", f"arms={{fixed: {{{SCHEDULE}: null}}}}")
    texts = [text for text in bad["warnings"] if "its schedule does worse than the fixed 4 drafts of arm fixed" in text]
    assert len(texts) == 1
    assert "take the fixed length" in texts[0]
    assert any("still pay 1 ms each for the drafter's first pass" in text for text in bad["warnings"])


def test_a_schedule_that_is_better_is_told(tmp_path):
    steep = ("calibration.target_per_token_us=900", "workload.arrivals.concurrency=40", "workload.requests=120")
    good = document(tmp_path, f"{SCHEDULE}=[[1, 4, 4], [5, 64, 0]]", f"arms={{fixed: {{{SCHEDULE}: null}}}}", *steep)
    assert any("its schedule does better than the fixed 4 drafts" in text for text in good["warnings"])


def test_a_schedule_of_one_length_is_that_length(tmp_path):
    arms = document(tmp_path, f"arms={{same: {{{SCHEDULE}: [[1, 64, 4]]}}}}")["arms"]
    same, fixed = arms["same"], arms["speculative"]
    assert same.pop("draft_length")
    assert fixed.pop("draft_length") == []
    assert same == fixed


def test_goodput_lies_between_the_best_fixed_length_and_the_clairvoyant_bound(tmp_path):
    arms = "k1: {speculation.num_speculative_tokens: 1}, k2: {speculation.num_speculative_tokens: 2}"
    policies = "goodput: {speculation.policy: goodput}, bound: {speculation.policy: clairvoyant}"
    found = document(tmp_path, f"arms={{{arms}, {policies}}}")["arms"]
    best = max(found[name]["output_throughput"] for name in ("k1", "k2", "speculative"))
    assert found["goodput"]["output_throughput"] > 0.97 * best
    assert found["bound"]["output_throughput"] > found["goodput"]["output_throughput"]


def test_every_policy_delivers_the_same_tokens(tmp_path):
    gaps = f"{SCHEDULE}: [[1, 4, 4], [5, 6, 1], [9, 64, 0]]"
    arms = f"a: {{speculation.policy: goodput}}, b: {{speculation.policy: clairvoyant}}, c: {{{gaps}}}"
    found = document(tmp_path, f"arms={{{arms}}}")["arms"]
    assert len({arm["total_output_tokens"] for arm in found.values()}) == 1


def test_only_drafts_that_were_made_count_as_beyond_the_measured_depth(tmp_path):
    """A schedule that never drafts beyond the first, measured, position takes nothing from the held ones."""
    model = "workload.slices.0.acceptance={kind: per_position, conditional: [0.8]}"
    warning = "beyond the measured draft positions"
    short = document(tmp_path, model, f"{SCHEDULE}=[[1, 64, 1]]")
    assert not any(warning in text for text in short["warnings"])
    long = run(tmp_path, model, f"{SCHEDULE}=[[1, 64, 3]]")
    arm = long.document["arms"]["speculative"]
    kept = sum(table.records.counts.kept_at for table in long.tables if table.name == "speculative")
    assert kept.sum() == arm["spec_decode_accepted_tokens"] - arm["draft_tokens_cut"]
    share = kept[1:].sum() / arm["total_output_tokens"]
    assert f"arm speculative: {share:.0%} of the tokens were committed {warning}" in long.document["warnings"]


def test_the_marginal_table_of_a_look_up_charges_the_drafts_that_matches_propose(tmp_path):
    """Steps whose cost is linear in rows: what the table adds up is what the steps took, misses included."""
    sets = (
        "calibration={kind: affine, target_fixed_ms: 10, target_per_token_us: 150}",
        "speculation={method: ngram, num_speculative_tokens: 4}",
        "workload.slices.0.acceptance={kind: named, name: ngram-2-4-vicuna-7b}",
    )
    ran = run(tmp_path, *sets)
    arm = ran.document["arms"]["speculative"]
    steps = [steps for table in ran.tables if table.name == "speculative" for steps in table.records.steps]
    rounds, drafts = (sum(int(getattr(one, name).sum()) for one in steps) for name in ("decode_rows", "draft_tokens"))
    assert drafts == arm["spec_decode_draft_tokens"] < 2 * rounds
    batch = rounds / sum(int((one.decode_rows > 0).sum()) for one in steps)
    adds_ms = sum(row["adds_ms"] for row in arm["marginal"][:4])
    assert adds_ms == pytest.approx(0.15 * batch * drafts / rounds, rel=1e-6)


def test_an_arm_with_pools_is_no_fixed_length_to_compare_with(tmp_path):
    """Replicas of its own for each slice are another engine, whatever the draft length."""
    path = tmp_path / "scenario.yaml"
    two = "\n    - {name: more, share: 0.5, prompt_tokens: 50, output_tokens: 60, acceptance: {kind: iid, alpha: 0.8}}"
    path.write_text(
        SCENARIO.replace("name: chat,", "name: chat, share: 0.5,").replace("alpha: 0.8}}", "alpha: 0.8}}" + two)
    )
    pools = "{engine.pools: [{slices: [chat]}, {slices: [more], num_speculative_tokens: 0}]}"
    arms = f"arms={{policy: {{speculation.policy: goodput}}, pools: {pools}}}"
    warnings = run_scenario(path, [arms]).document["warnings"]
    assert any("drafts of arm speculative" in text for text in warnings)
    assert not any("drafts of arm pools" in text for text in warnings)
