"""Times behind the timeline: phases of steps and spans of requests leave no gap and agree with the latencies."""

import numpy as np
import pytest
from hand_made import records, steps, story
from hypothesis import given, settings
from random_records import made_records

from sim.analysis.latency import request_latencies
from sim.analysis.request_spans import request_spans
from sim.analysis.step_phases import STEP_PHASES, phase_bounds_ms
from sim.analysis.timeline import completed_requests, timeline
from sim.engine.records import Phase, Steps


@settings(max_examples=150, deadline=None)
@given(made_records())
def test_phases_sum_to_their_steps_and_never_go_back(made):
    for one in made[0].steps:
        bounds = phase_bounds_ms(one)
        assert np.all(np.diff(bounds.ravel()) >= 0)
        np.testing.assert_allclose(bounds[:, -1] - bounds[:, 0], one.duration_ms, rtol=1e-9, atol=1e-9)
        target = bounds[:, 3] - bounds[:, 1]
        np.testing.assert_allclose(target, one.target_ms, rtol=1e-9, atol=1e-9)


def test_phases_in_their_order():
    (row,) = phase_bounds_ms(steps([[1, 9, 5, 2, 0.5, 3]], start_ms=10.0))
    assert dict(zip(STEP_PHASES, np.diff(row), strict=True)) == {
        "host": 1,
        "verification": 5,
        "prefill": 4,
        "kv_update": 2,
        "sampling": 0.5,
        "drafting": 3,
    }
    none = Steps(**{name: np.zeros(0) for name in Steps.__dataclass_fields__})
    assert phase_bounds_ms(none).shape == (0, 7)


def test_a_pass_that_its_prefill_rows_make_cheaper_is_verification_alone():
    """Another graph mode can do that; no phase takes less than no time."""
    (row,) = phase_bounds_ms(steps([[0, 4, 5, 0, 0, 0]]))
    assert np.diff(row).tolist() == [0, 4, 0, 0, 0, 0]


def test_rounding_of_the_clock_lets_no_steps_overlap():
    one = steps([[0.1, 0.2, 0.2, 0.3, 0.4, 0.5]] * 2000, start_ms=1e7)
    earlier = np.append(one.start_ms[0], np.nextafter(one.start_ms[1:], 0))
    one.start_ms[:] = earlier
    bounds = phase_bounds_ms(one)
    assert np.all(bounds[:-1, -1] <= bounds[1:, 0])


def test_no_number_is_an_error():
    with pytest.raises(ValueError, match="nan"):
        phase_bounds_ms(steps([[np.nan, 4, 4, 0, 0, 0]]))


@settings(max_examples=150, deadline=None)
@given(made_records())
def test_spans_follow_each_other_and_agree_with_the_latencies(made):
    told, stories = made
    spans = request_spans(told)
    done = completed_requests(told)
    latencies = request_latencies(told, timeline(told), done)
    np.testing.assert_allclose(spans.first_token_ms[done] - spans.arrival_ms[done], latencies.ttft, atol=1e-9)
    np.testing.assert_allclose(spans.end_of_request_ms[done] - spans.arrival_ms[done], latencies.e2el, atol=1e-9)
    for request, one in enumerate(stories):
        own = slice(spans.offset[request], spans.offset[request + 1])
        if not one["phases"]:
            assert spans.offset[request] == spans.offset[request + 1]
            assert np.isnan(spans.end_of_request_ms[request])
            continue
        start, end = spans.start_ms[own], spans.end_ms[own]
        assert spans.arrival_ms[request] <= start[0]
        np.testing.assert_array_equal(start[1:], end[:-1])
        assert np.all(end >= start)
        assert end[-1] == pytest.approx(spans.end_of_request_ms[request], abs=1e-9)


def test_spans_of_a_story():
    one = story("PpFDdxF", arrival_ms=3.0, first_step=1)
    spans = request_spans(records([steps([[0, 10, 10, 0, 0, 2]] * 8)], [one], async_delivery=True))
    names = [Phase(phase).name.lower() for phase in spans.phase]
    expected = "prefill prefill_left_out prefill decode decode_left_out preempted prefill"
    assert names == expected.split()
    assert spans.start_ms.tolist() == [12, 24, 36, 48, 60, 72, 84]
    assert spans.end_ms.tolist() == [24, 36, 48, 60, 72, 84, 94]
    assert (spans.first_token_ms[0], spans.end_of_request_ms[0]) == (46, 94)


def test_a_decode_waits_while_a_step_only_prefills():
    one = steps([[0, 10, 10, 0, 0, 0]] * 6, prefill_rows=[1, 0, 1, 1, 0, 1], decode_rows=[0, 1, 0, 0, 1, 1])
    spans = request_spans(records([one], [story("FDDDDD"), story("D", first_step=5)]))
    own = slice(spans.offset[0], spans.offset[1])
    assert [Phase(phase).name for phase in spans.phase[own]] == ["PREFILL", "DECODE", "DECODE_LEFT_OUT", "DECODE"]
    assert spans.first_step[own].tolist() == [0, 1, 2, 4]
    assert spans.last_step[own].tolist() == [0, 1, 3, 5]
    assert spans.start_ms[own].tolist() == [0, 10, 20, 40]
