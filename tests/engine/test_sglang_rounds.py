"""What a step of the SGLang style runs and when its tokens leave, on paper."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from worlds import COSTS, make_requests, make_settings, worlds

from sim.acceptance.runs import AcceptanceRuns
from sim.analysis.attribution import mean_ttft_parts, time_share
from sim.analysis.latency import inter_token_latencies
from sim.analysis.paused_decodes import segments_with_pauses
from sim.analysis.timeline import timeline
from sim.cost.affine_costs import AffineStepCosts
from sim.engine.loop import simulate
from sim.engine.records import Status
from sim.inputs.calibration import AffineCosts

AFFINE = AffineCosts(target_fixed_ms=10, draft_fixed_ms=1, draft_per_token_us=1000, host_ms=4)


def all_accepted(requests, drafts):
    offsets = np.cumsum(requests.output_tokens) - requests.output_tokens
    return AcceptanceRuns(offsets, np.full(int(requests.output_tokens.sum()), drafts, np.uint8), None, drafts + 1)


def run(style, *, prompt=(4,), output=(7,), drafts=2, **changes):
    requests = make_requests(list(prompt), list(output))
    limits = make_settings(style=style, num_speculative_tokens=drafts, **changes)
    costs = AffineStepCosts(AFFINE, draft_extend=style == "sglang")
    return simulate(requests, all_accepted(requests, drafts), limits, costs)


def test_the_drafter_prefills_then_makes_narrow_passes_and_a_draft_extend_of_one_row_a_request():
    steps = run("sglang").steps[0]
    # Prefill: one pass over 4 rows. Rounds: draft-extend and one narrow pass, a row each.
    assert steps.draft_ms.tolist() == [5.0, 4.0, 4.0]
    assert steps.committed_tokens.tolist() == [1, 3, 3]
    assert run("vllm").steps[0].draft_ms.tolist() == [7.0, 6.0, 6.0]  # all target rows, and narrow passes at its end


def test_tokens_leave_when_the_round_ends_drafting_included():
    records = run("sglang", async_scheduling=True)
    assert records.delivery_ms(0).tolist() == [15.0, 29.0, 43.0]
    assert run("vllm", async_scheduling=True).delivery_ms(0).tolist()[0] == 10.0


def test_overlap_hides_the_host():
    assert run("sglang").steps[0].host_ms.tolist() == [4.0, 4.0, 4.0]
    assert run("sglang", async_scheduling=True).steps[0].host_ms.tolist() == [0.0, 0.0, 0.0]


def test_at_a_reached_zero_the_draft_extend_still_runs_and_the_choice_is_for_the_same_step():
    # Two requests: no drafts. One: two drafts, from the first step that has one request.
    records = run("sglang", prompt=(4, 4), output=(3, 9), draft_schedule=(2, 2, 0))
    steps = records.steps[0]
    assert steps.decode_rows.tolist() == [0, 2, 2, 1, 1]
    assert steps.draft_tokens.tolist() == [0, 0, 0, 2, 2]
    assert steps.draft_ms.tolist() == [9.0, 3.0, 3.0, 4.0, 4.0]


def test_prefill_batches_lie_between_two_deliveries_of_a_decode():
    requests = make_requests([4, 4], [5, 2], arrival_ms=[0.0, 15.0])
    limits = make_settings(style="sglang")
    records = simulate(requests, all_accepted(requests, 0), limits, AffineStepCosts(AFFINE))
    # Steps of 14 ms: prefill 0, round, prefill 1, then rounds of both.
    assert records.steps[0].decode_rows.tolist() == [0, 1, 0, 2, 1, 1]
    gaps, weights = inter_token_latencies(records, timeline(records), np.array([0]))
    assert sorted(np.repeat(gaps, weights).tolist()) == pytest.approx([14.0, 14.0, 14.0, 28.0])


@settings(max_examples=100, deadline=None)
@given(worlds(styles=("sglang",)))
def test_pauses_written_out_change_no_share_and_no_gap(world):
    """Whole DECODE segments and those cut at every prefill batch are the same story."""
    requests, runs, limits = world
    records = simulate(requests, runs, limits, COSTS)
    line, done = timeline(records), np.flatnonzero(records.requests.status == Status.COMPLETED)
    cut = dataclasses.replace(records, segments=segments_with_pauses(records, line))
    whole, divided = time_share(records, line, done), time_share(cut, line, done)
    if len(done):
        assert sum(whole.values()) == pytest.approx(1)
        assert whole == pytest.approx(divided, abs=1e-12)
        assert mean_ttft_parts(records, line, done) == pytest.approx(mean_ttft_parts(cut, line, done))
    gaps = [
        np.sort(np.repeat(*inter_token_latencies(one, line, done)))  # every gap as often as it occurs
        for one in (records, cut)
    ]
    np.testing.assert_allclose(*gaps, rtol=1e-9)


def test_worlds_reach_every_rule():
    """Retraction, cut prompts, full batches and paused decodes all happen among small worlds."""
    seen = set()

    @settings(max_examples=300, deadline=None, database=None, derandomize=True)
    @given(worlds(styles=("sglang",)))
    def look(world):
        requests, runs, limits = world
        records = simulate(requests, runs, limits, COSTS)
        if records.requests.preemptions.any():
            seen.add("retraction")
        if (records.requests.prefill_passes > 1 + records.requests.preemptions).any():
            seen.add("cut prompt")
        for steps in records.steps:
            if (steps.only_prefills & (steps.running > steps.prefill_rows)).any():
                seen.add("paused decodes")
            if ((steps.waiting > 0) & ~steps.only_prefills).any():
                seen.add("full")
            if steps.draft_tokens.any():
                seen.add("drafts")

    look()
    assert seen == {"retraction", "cut prompt", "paused decodes", "full", "drafts"}
