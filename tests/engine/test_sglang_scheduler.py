"""SGLang's rules one by one, on paper: who joins a prefill batch, who waits, who is retracted."""

import numpy as np
import pytest
from worlds import make_requests, make_settings

from sim.acceptance.runs import AcceptanceRuns
from sim.engine.core import EngineCore
from sim.engine.new_token_ratio import NewTokenRatio
from sim.engine.policies import FixedDrafts
from sim.engine.round_tables import RoundTables
from sim.engine.rounds import RoundCounter
from sim.engine.rows import Row
from sim.engine.segments import SegmentLog
from sim.engine.sglang_limits import SglangLimits, reserved_slots
from sim.engine.sglang_scheduler import PrefillRoom


def engine(prompt, output, *, slots=None, drafts=0, page=1, running=16, **limits):
    """A core whose drafts are all accepted; requests are added by the test."""
    requests = make_requests(prompt, output)
    offsets = np.cumsum(requests.output_tokens) - requests.output_tokens
    accepted = np.full(int(requests.output_tokens.sum()), drafts, dtype=np.uint8)
    runs = AcceptanceRuns(offsets, accepted, None, drafts + 1)
    settings = make_settings(
        style="sglang",
        max_num_seqs=running,
        block_size=page,
        num_gpu_blocks=None if slots is None else slots // page + 1,
        num_speculative_tokens=drafts,
        sglang=SglangLimits(**limits),
    )
    tables = RoundTables(runs, drafts)
    rounds = RoundCounter(runs, drafts, requests.output_tokens)
    return EngineCore(settings, requests, tables, rounds, SegmentLog(), policy=FixedDrafts(drafts), settle=False)


def step(core):
    """Run one step; returns [(request, tokens, decodes)] and the requests that were retracted."""
    plan = core.plan_step()
    rows = [(one.row.request, one.tokens, one.decodes) for one in plan.rows]
    retracted = [one.row.request for one in plan.preempted]
    core.commit(plan, 0)
    return rows, retracted


def waiting(core):
    return [row.request for row in core.scheduler.waiting]


def test_prefill_batches_run_instead_of_decodes():
    core = engine([4, 5, 6], [9, 9, 9])
    core.add(0)
    assert step(core) == ([(0, 4, False)], [])
    assert step(core) == ([(0, 1, True)], [])
    core.add(1)
    core.add(2)
    assert step(core) == ([(1, 5, False), (2, 6, False)], [])
    assert step(core) == ([(0, 1, True), (1, 1, True), (2, 1, True)], [])


def test_a_cut_prompt_goes_on_in_the_next_batch_and_others_fill_what_it_leaves():
    core = engine([4, 20, 3, 9], [9, 9, 9, 9], chunked_prefill_size=8)
    core.add(0)
    step(core)
    for request in (1, 2, 3):
        core.add(request)
    assert step(core)[0] == [(1, 8, False)]
    assert step(core)[0] == [(1, 8, False)]
    assert step(core)[0] == [(1, 4, False), (2, 3, False), (3, 1, False)]
    assert step(core)[0] == [(3, 8, False)]
    assert [decodes for _, _, decodes in step(core)[0]] == [True] * 4


def test_a_prefill_batch_has_no_more_residents_than_allowed_and_waits_for_one_to_leave():
    core = engine([4, 4, 4], [2, 5, 5], running=2)
    for request in range(3):
        core.add(request)
    assert step(core)[0] == [(0, 4, False), (1, 4, False)]
    assert step(core)[0] == [(0, 1, True), (1, 1, True)]  # request 0 ends here
    assert step(core)[0] == [(2, 4, False)]


def test_tokens_of_a_prefill_batch_are_counted_in_whole_pages():
    room = PrefillRoom(SglangLimits(chunked_prefill_size=64, max_prefill_tokens=1000), 16)
    assert room.tokens_of(17, first=True) == 17
    room.take(17)
    assert room.tokens_of(32, first=False) == 32
    assert room.tokens_of(33, first=False) == 32  # 33 tokens are three pages, two are left
    room.take(32)
    assert not room.open()


def test_without_chunks_only_the_first_prompt_may_exceed_the_prefill_tokens():
    limits = SglangLimits(chunked_prefill_size=None, max_prefill_tokens=100)
    assert PrefillRoom(limits, 1).tokens_of(300, first=True) == 300
    assert PrefillRoom(limits, 1).tokens_of(300, first=False) == 0
    assert PrefillRoom(limits, 1).tokens_of(99, first=False) == 99
    assert PrefillRoom(limits, 1).tokens_of(100, first=False) == 0


@pytest.mark.parametrize(("slots", "joins"), [(112, False), (113, True)])
def test_admission_expects_a_share_of_what_the_running_requests_may_still_need(slots, joins):
    # Request 0 holds 51 slots and is expected to need 0.7 of its 50 tokens to come: 35. Request 1 asks for 20 + 5 and a
    # page of 1, which must be less than what is left: 112 - 86 = 26.
    core = engine([50, 20], [51, 5], slots=slots)
    core.add(0)
    step(core)
    core.add(1)
    rows, _ = step(core)
    assert rows == ([(1, 20, False)] if joins else [(0, 1, True)])


def _three_residents():
    """Requests 0 to 2 decode, 3 waits outside: 1245 slots less 53 held and 0.7 of 1217 tokens to come leave 340.1."""
    core = engine([30, 10, 10, 300], [700, 500, 20, 40], slots=1245)
    for request in range(3):
        core.add(request)
        assert step(core)[0][0][0] == request
    return core


def test_who_was_refused_is_asked_again_only_when_somebody_has_left():
    core = _three_residents()
    core.add(3)  # it needs less than 341 slots
    for _ in range(19):
        assert [decodes for _, _, decodes in step(core)[0]] == [True] * 3
    assert step(core)[0] == [(3, 300, False)]  # request 2 has ended


def test_the_expected_share_falls_with_every_decode_step():
    core = _three_residents()
    for _ in range(4):  # each frees 1.2 slots of the expectation and takes 0.9 more than was expected
        step(core)
    core.add(3)
    assert step(core)[0] == [(3, 300, False)]


def _run_until_retraction(core):
    for _ in range(100):
        rows, retracted = step(core)
        if retracted:
            return rows, retracted
    raise AssertionError("nothing was retracted")


@pytest.mark.parametrize(("drafts", "victim"), [(0, 0), (1, 2)])
def test_out_of_slots_the_longest_prompt_of_the_fewest_tokens_goes_but_with_drafts_the_latest(drafts, victim):
    core = engine([10, 5, 8, 3], [30, 30, 20, 30], slots=60, drafts=drafts, schedule_conservativeness=0.0)
    for request in range(3):  # one after the other: nobody's whole output is reserved
        core.add(request)
        step(core)
    core.add(3)
    assert waiting(core) == [3]
    rows, retracted = _run_until_retraction(core)
    assert retracted == [victim]
    assert victim not in [request for request, _, _ in rows]
    assert waiting(core) == [3, victim]  # behind those who wait


def test_the_request_with_the_fewest_tokens_goes_first():
    core = engine([10, 5, 2], [40, 40, 30], slots=60, schedule_conservativeness=0.0)
    core.add(0)
    step(core)
    core.add(1)
    for _ in range(4):
        step(core)
    core.add(2)
    _, retracted = _run_until_retraction(core)
    assert retracted == [2]


def test_a_retracted_request_prefills_all_it_knew_and_gets_its_next_token():
    core = engine([10, 5, 8], [30, 30, 20], slots=60, schedule_conservativeness=0.0)
    for request in range(3):
        core.add(request)
        step(core)
    _run_until_retraction(core)
    known = core.scheduler.waiting[0].known_tokens
    assert known > 10
    for _ in range(100):
        rows, _ = step(core)
        if rows and not rows[0][2]:
            break
    assert rows == [(0, known, False)]
    assert core.scheduler.running[-1].known_tokens == known + 1


def test_a_decode_holds_the_slots_of_two_rounds():
    assert [reserved_slots(drafts) for drafts in (0, 1, 3)] == [1, 4, 8]
    core = engine([10], [30], slots=100, drafts=3)
    core.add(0)
    step(core)
    assert core.scheduler.blocks.held_by_rows == 10 + 8
    step(core)
    core.plan_step()
    assert core.scheduler.blocks.held_by_rows == 14 + 8


def test_the_ratio_of_new_tokens():
    ratio = NewTokenRatio(1.0)
    assert ratio.at(0) == 0.7
    assert ratio.at(300) == pytest.approx((0.7 + 0.098) / 2)
    assert ratio.at(600) == ratio.at(10_000) == pytest.approx(0.098)
    assert NewTokenRatio(3.0).at(0) == 1.0
    row = Row(0, 100, 200, 0, 0)
    row.known_tokens = 130
    ratio.after_retraction([row], 900)
    assert ratio.at(900) == pytest.approx((30 + 20) / (100 + 1))
    assert ratio.at(901) < ratio.at(900)
    ratio.reset(1000)
    assert ratio.at(1000) == 0.7


def test_a_request_that_could_never_pass_admission_is_refused():
    core = engine([50, 50], [9, 10], slots=61)
    assert core.add(0)
    assert not core.add(1)  # 60 tokens and a page of 1 are not less than 61
