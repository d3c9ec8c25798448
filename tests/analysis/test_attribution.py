import pytest
from hand_made import PARTS, records, steps, story
from hypothesis import given, settings
from random_records import made_records

from sim.analysis.attribution import SHARES, mean_ttft_parts, time_share
from sim.analysis.latency import request_latencies
from sim.analysis.timeline import completed_requests, timeline


def shares_step_by_step(made, stories):
    """The rules applied to one request and one step at a time."""
    spent, e2el = dict.fromkeys(SHARES, 0.0), 0.0
    for one in stories:
        here = made.steps[one["replica"]]
        for i, letter in enumerate(one["phases"]):
            step = one["first_step"] + i
            host, target, target_decode, kv_update, sampling, draft = (getattr(here, part)[step] for part in PARTS)
            if letter in "px":
                spent["waiting"] += here.duration_ms[step]
                continue
            if letter == "d":
                spent["prefill_interference"] += here.duration_ms[step]
                continue
            spent["host"] += host
            spent["kv_update"] += kv_update
            spent["sampling"] += sampling
            last = i + 1 == len(one["phases"])
            spent["drafting"] += 0.0 if last and made.async_delivery else draft
            if letter == "D":
                spent["verification"] += target_decode
                spent["prefill_interference"] += target - target_decode
            else:
                spent["prefill"] += target
        if one["phases"]:
            spent["waiting"] += here.start_ms[one["first_step"]] - one["arrival_ms"]
            finish = one["first_step"] + len(one["phases"]) - 1
            e2el += made.delivery_ms(one["replica"])[finish] - one["arrival_ms"]
    return {name: value / e2el for name, value in spent.items()}


def test_shares_on_paper():
    # host, target, target_decode, kv_update, sampling, draft
    made = records(
        [steps([(1, 10, 4, 1, 2, 6), (1, 8, 8, 1, 2, 8), (1, 8, 5, 1, 2, 3)])],
        [story("FDD", arrival_ms=-5.0)],
        async_delivery=True,
    )
    # e2el = 5 + 20 + 20 + 12 (the last drafting is after the last delivery)
    expected = {"waiting": 5, "prefill": 10, "drafting": 14, "verification": 13, "sampling": 6, "kv_update": 3}
    expected |= {"host": 3, "prefill_interference": 3}
    got = time_share(made, timeline(made), completed_requests(made))
    assert got == pytest.approx({name: value / 57 for name, value in expected.items()})


@given(made_records())
@settings(deadline=None, max_examples=60)
def test_shares_sum_to_one_and_follow_the_rules(made):
    made, stories = made
    got = time_share(made, timeline(made), completed_requests(made))
    assert sum(got.values()) == pytest.approx(1.0, abs=1e-9)
    assert got == pytest.approx(shares_step_by_step(made, stories), abs=1e-9)


def test_ttft_parts_on_paper():
    made = records(
        [steps([(1, 10, 4, 1, 2, 6), (1, 8, 8, 1, 2, 8), (1, 30, 5, 1, 2, 3)])],
        [story("PxF", arrival_ms=-5.0, own_prefill_ms=25.0)],
    )
    got = mean_ttft_parts(made, timeline(made), completed_requests(made))
    # the preempted step and 40 - 25 ms of others' rows; drafting of both its steps, delivered at the end of the step
    assert got == pytest.approx({"queue": 5, "prefill": 25 + 2 + 2 + 4, "drafter": 9, "interference": 20 + 15})


def test_ttft_leaves_out_drafting_after_delivery():
    made = records([steps([(0, 5, 5, 0, 0, 2), (0, 5, 5, 0, 0, 3)])], [story("PF")], async_delivery=True)
    got = mean_ttft_parts(made, timeline(made), completed_requests(made))
    assert got["drafter"] == pytest.approx(2.0)


@given(made_records())
@settings(deadline=None, max_examples=60)
def test_ttft_parts_sum_to_the_mean_ttft(made):
    made, _ = made
    line, done = timeline(made), completed_requests(made)
    parts = mean_ttft_parts(made, line, done)
    assert sum(parts.values()) == pytest.approx(request_latencies(made, line, done).ttft.mean(), abs=1e-9)


def test_nothing_completed_has_no_shares():
    made = records([steps([])], [story("")])
    line, done = timeline(made), completed_requests(made)
    assert set(time_share(made, line, done).values()) == {None}
    assert set(mean_ttft_parts(made, line, done).values()) == {None}
