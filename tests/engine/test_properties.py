"""What must hold in every world: the fast path changes nothing, and nothing is lost or made up."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from worlds import COSTS, make_requests, make_runs, make_settings, worlds

from sim.engine import loop
from sim.engine.records import Phase, Status


def assert_same_records(one, other, rtol=0.0):
    """Whole numbers are equal; times up to `rtol`, for sums that were added in another order."""
    pairs = list(zip(one.steps, other.steps, strict=True))
    pairs += [(getattr(one, part), getattr(other, part)) for part in ("requests", "segments", "counts")]
    for a, b in pairs:
        for field in dataclasses.fields(a):
            ours, theirs = np.asarray(getattr(a, field.name)), np.asarray(getattr(b, field.name))
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol, err_msg=field.name)
            else:
                np.testing.assert_array_equal(ours, theirs, err_msg=field.name)


@settings(max_examples=250, deadline=None)
@given(worlds())
def test_settled_rows_change_no_record(world):
    requests, runs, limits = world
    fast, slow = (
        loop.simulate(requests, runs, limits, COSTS),
        loop.simulate(requests, runs, limits, COSTS, settle=False),
    )
    assert_same_records(fast, slow, rtol=1e-12)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_tokens_blocks_and_time_are_conserved(world):
    requests, runs, limits = world
    records = loop.simulate(requests, runs, limits, COSTS)
    done = records.requests.status == Status.COMPLETED
    delivered = loop.deliverable_tokens(requests, limits)
    np.testing.assert_array_equal(records.requests.output_tokens[done], delivered[done])
    committed = sum(int(steps.committed_tokens.sum()) for steps in records.steps)
    assert committed == int(delivered[done].sum())
    # Each prefill that completes emits one token, everything else comes from rounds.
    emitted = int(records.segments.delivers.sum())
    assert records.counts.committed_by_rounds + emitted == committed
    assert records.counts.rounds == int(records.requests.rounds.sum())
    assert records.counts.draft_tokens == int(records.requests.draft_tokens.sum())
    assert records.counts.num_drafts == int(records.requests.num_drafts.sum())
    assert records.counts.accepted_tokens == int(records.requests.accepted_tokens.sum())
    assert records.counts.draft_tokens_cut == int(records.requests.draft_tokens_cut.sum())
    # A round commits its accepted drafts and one more token, cut at the end: the bonus may be what is cut.
    kept = records.counts.accepted_tokens - records.counts.draft_tokens_cut
    assert kept <= records.counts.committed_by_rounds <= kept + records.counts.rounds
    for steps in records.steps:
        ends = steps.start_ms + steps.duration_ms
        assert np.all(steps.start_ms[1:] >= ends[:-1] - 1e-6)
        if records.usable_blocks is not None:
            assert steps.blocks_used.max(initial=0) <= records.usable_blocks
        if len(steps):
            assert steps.waiting[-1] == 0


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_segments_cover_each_request_from_first_to_last_step(world):
    requests, runs, limits = world
    records = loop.simulate(requests, runs, limits, COSTS)
    segments = records.segments
    for request in np.flatnonzero(records.requests.status == Status.COMPLETED):
        own = np.flatnonzero(segments.request == request)
        first, last = segments.first_step[own], segments.last_step[own]
        assert first[0] == records.requests.first_scheduled_step[request]
        assert last[-1] == records.requests.finish_step[request]
        np.testing.assert_array_equal(first[1:], last[:-1] + 1)
        runs_rounds = ~records.steps[records.requests.replica[request]].only_prefills
        decodes = segments.phase[own] == Phase.DECODE
        rounds = sum(int(np.sum(runs_rounds[a : b + 1])) for a, b in zip(first[decodes], last[decodes], strict=True))
        assert rounds == records.requests.rounds[request]
        assert np.sum(segments.phase[own] == Phase.PREEMPTED) == records.requests.preemptions[request]
        arrival = records.requests.arrival_ms[request]
        start = records.steps[records.requests.replica[request]].start_ms[first[0]]
        assert arrival <= start + 1e-9


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_all_blocks_come_back(world):
    requests, runs, limits = world
    cores = []
    original = loop.EngineCore

    class Kept(original):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            cores.append(self)

    loop.EngineCore = Kept
    try:
        loop.simulate(requests, runs, limits, COSTS)
    finally:
        loop.EngineCore = original
    for core in cores:
        assert core.scheduler.blocks.held_by_rows == 0
        assert not core.settled.rows()


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_the_same_arguments_give_the_same_records(world):
    requests, runs, limits = world
    assert_same_records(loop.simulate(requests, runs, limits, COSTS), loop.simulate(requests, runs, limits, COSTS))


def test_a_request_that_can_never_fit_is_refused_and_the_next_one_sent():
    requests = make_requests([5, 500, 5], [4, 4, 4], concurrency=1)
    limits = make_settings(num_gpu_blocks=11)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 1), limits, COSTS)
    assert records.requests.status.tolist() == [Status.COMPLETED, Status.FAILED, Status.COMPLETED]


def test_without_chunking_a_prompt_beyond_the_budget_is_refused_instead_of_waiting_for_ever():
    requests = make_requests([300, 5], [4, 4])
    limits = make_settings(enable_chunked_prefill=False, max_num_batched_tokens=200, max_num_scheduled_tokens=200)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 1), limits, COSTS)
    assert records.requests.status.tolist() == [Status.FAILED, Status.COMPLETED]


def test_near_the_model_length_nobody_accepts_drafts_that_were_not_proposed():
    # Rows that end far below max_model_len are settled; others bring placeholders to all of them (rule 20).
    rng = np.random.default_rng(3)
    prompt = np.where(np.arange(60) % 3 == 0, 90, 20)
    requests = make_requests(prompt, np.full(60, 30), concurrency=8)
    limits = make_settings(max_model_len=121, num_speculative_tokens=3, draft_slots=1)
    runs = make_runs(requests, rng, 4, alpha=0.9)
    fast, slow = (loop.simulate(requests, runs, limits, COSTS, settle=settle) for settle in (True, False))
    assert any(np.any((steps.draft_ms == 0) & (steps.decode_rows > 0)) for steps in fast.steps)
    assert_same_records(fast, slow, rtol=1e-12)


def test_without_chunking_a_request_that_is_never_preempted_needs_only_its_prompt_to_fit():
    requests = make_requests([100], [400])
    limits = make_settings(enable_chunked_prefill=False, max_num_batched_tokens=200, max_num_scheduled_tokens=200)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 1), limits, COSTS)
    assert records.requests.status.tolist() == [Status.COMPLETED]


def test_an_idle_replica_sees_the_next_request_when_the_answer_is_delivered():
    # One user, two replicas in turn: the other one is always idle, whatever the first still drafts.
    requests = make_requests([20] * 6, [7] * 6, concurrency=1)
    limits = make_settings(num_speculative_tokens=3, async_scheduling=True, replicas=2)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 4), limits, COSTS)
    first = records.requests.first_scheduled_step
    for request, replica in enumerate(records.requests.replica):
        start = records.steps[replica].start_ms[first[request]]
        assert start == records.requests.arrival_ms[request]


def test_a_user_cannot_run_twice_at_once():
    from sim.analysis.metrics import _max_running

    requests = make_requests([20] * 30, [7] * 30, concurrency=2)
    limits = make_settings(replicas=3)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 1), limits, COSTS)
    assert sum(int(steps.running.max()) for steps in records.steps) > 2
    assert _max_running(records) == 2
