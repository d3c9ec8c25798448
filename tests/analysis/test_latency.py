import numpy as np
import pytest
from hand_made import records, steps, story
from hypothesis import given, settings
from random_records import made_records

from sim.analysis.latency import inter_token_latencies, request_latencies
from sim.analysis.timeline import completed_requests, timeline


def delivery_times(one, made):
    """Delivery times of a story, step by step."""
    delivered = made.delivery_ms(one["replica"])
    return [delivered[one["first_step"] + i] for i, letter in enumerate(one["phases"]) if letter in "FD"]


def test_latencies_on_paper():
    # steps of 10 ms that end at 10, 20, ... 50
    made = records(
        [steps([(1, 9, 9, 0, 0, 0)] * 5)],
        [story("PFDD", arrival_ms=-2.0, tokens=[1, 3, 2]), story("F", arrival_ms=5.0, first_step=3), story("")],
    )
    line = timeline(made)
    done = completed_requests(made)
    assert done.tolist() == [0, 1]
    got = request_latencies(made, line, done)
    assert got.ttft == pytest.approx([22.0, 35.0])
    assert got.tpot[0] == pytest.approx(20.0 / 5)
    assert np.isnan(got.tpot[1])
    assert got.e2el == pytest.approx([42.0, 35.0])
    assert got.decode == pytest.approx([20.0, 0.0])
    assert got.queue == pytest.approx([2.0, 25.0])


def test_asynchronous_delivery_leaves_before_drafting():
    made = records([steps([(0, 6, 6, 0, 0, 4)] * 3)], [story("FDD")], async_delivery=True)
    got = request_latencies(made, timeline(made), np.array([0]))
    assert got.ttft == pytest.approx([6.0])
    assert got.e2el == pytest.approx([26.0])


@given(made_records())
@settings(deadline=None, max_examples=60)
def test_gaps_are_those_between_every_two_deliveries(made):
    made, stories = made
    done = completed_requests(made)
    values, weights = inter_token_latencies(made, timeline(made), done)
    expected = np.concatenate([np.diff(delivery_times(stories[i], made)) for i in done])
    assert weights.min(initial=1) >= 1
    assert np.sort(np.repeat(values, weights)) == pytest.approx(np.sort(expected), abs=1e-9)


@given(made_records())
@settings(deadline=None, max_examples=60)
def test_latencies_are_those_of_the_deliveries(made):
    made, stories = made
    done = completed_requests(made)
    got = request_latencies(made, timeline(made), done)
    for row, i in enumerate(done):
        times, arrival = delivery_times(stories[i], made), stories[i]["arrival_ms"]
        assert got.ttft[row] == pytest.approx(times[0] - arrival)
        assert got.e2el[row] == pytest.approx(times[-1] - arrival)
        assert got.decode[row] == pytest.approx(times[-1] - times[0])


def test_gaps_of_selected_requests_only():
    made = records([steps([(0, 10, 10, 0, 0, 0)] * 4)], [story("FDDD"), story("FD", first_step=1)])
    values, weights = inter_token_latencies(made, timeline(made), np.array([1]))
    assert np.repeat(values, weights) == pytest.approx([10.0])


def test_warm_up_cuts_by_arrival_not_by_index():
    made = records([steps([(0, 10, 10, 0, 0, 0)])], [story("F", arrival_ms=-1.0), story("F", arrival_ms=-3.0)])
    assert completed_requests(made, 1).tolist() == [0]
