"""The timeline tells what the records tell: every step by phase, every request, every counter, in every world."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from documents import paying
from hand_made import records as made_by_hand
from hand_made import steps as made_steps
from hand_made import story, workload
from hypothesis import given, settings
from random_records import made_records
from trace_reader import read_trace
from worlds import COSTS, make_requests, make_runs, make_settings, worlds

from sim.cost.step_costs import GraphMode
from sim.engine import loop
from sim.engine.records import Phase, Records, Status
from sim.report.timeline_file import write_timeline
from sim.report.timeline_requests import Lanes
from sim.workload.requests import Requests

NAMES = {Phase.PREFILL: "prefill", Phase.DECODE: "decode", Phase.PREEMPTED: "preempted"}
NAMES |= {Phase.PREFILL_LEFT_OUT: "prefill left out", Phase.DECODE_LEFT_OUT: "decode left out"}
NEAR = {"rel": 1e-9, "abs": 1e-5}  # us; times are written to 1e-6 us


@dataclass
class Tables:
    name: str
    replication: int
    requests: Requests
    records: Records


@dataclass
class Result:
    document: dict
    tables: list[Tables]


def written(*arms, name="timeline.json", **options):
    """The trace of arms given as (name, requests, records), read back from a file, and what was told about it."""
    result = Result(paying(), [Tables(name, 0, requests, records) for name, requests, records in arms])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        told = write_timeline(result, str(path), **options)
        assert [one.name for one in Path(folder).iterdir()] == [name]
        return read_trace(path), told


def one_arm(records, requests, **options):
    return written(("a", requests, records), **options)[0]


def check_steps(trace, process, steps):
    slices = trace.threads.get((process, "steps"), [])
    assert [one.args["step"] for one in slices] == list(range(len(steps)))
    durations = steps.duration_ms
    for i, one in enumerate(slices):
        assert one.start == pytest.approx(1000 * steps.start_ms[i], **NEAR)
        assert one.length == pytest.approx(1000 * durations[i], **NEAR)
        assert sum(phase.length for phase in one.inside) == pytest.approx(one.length, **NEAR)
        edges = [one.start, *(edge for phase in one.inside for edge in (phase.start, phase.end)), one.end]
        assert edges[::2] == edges[1::2], "phases leave a gap or overlap"
        told = {phase.name: phase.length for phase in one.inside}
        target = told.pop("verification", 0.0) + told.pop("prefill", 0.0)
        assert target == pytest.approx(1000 * steps.target_ms[i], **NEAR)
        parts = {"host": "host_ms", "kv update": "kv_update_ms", "sampling": "sampling_ms", "drafting": "draft_ms"}
        for name, column in parts.items():
            assert told.pop(name, 0.0) == pytest.approx(1000 * getattr(steps, column)[i], **NEAR)
        assert not told
        columns = {"drafts_verified": "draft_tokens", "prompt_tokens": "prefill_tokens"}
        for name in ("decode_rows", "prefill_rows", "committed_tokens", "context_tokens", "running", "waiting"):
            columns[name] = name
        assert {key: one.args[key] for key in columns} == {
            key: getattr(steps, column)[i] for key, column in columns.items()
        }
        assert one.args["graph_mode"] == GraphMode(steps.graph_mode[i]).name


def check_counters(trace, process, steps):
    """A counter holds its value until it changes, and is 0 while no step runs."""
    tracks = {
        "requests running": steps.running,
        "requests waiting": steps.waiting,
        "KV blocks used": steps.blocks_used,
        "tokens committed by the step": steps.committed_tokens,
    }
    start_us, end_us = 1000 * steps.start_ms, 1000 * (steps.start_ms + steps.duration_ms)
    for name, column in tracks.items():
        values = trace.counters.get((process, name), [])
        at = np.array([us for us, _ in values])
        held = np.array([value for _, value in values])
        if not len(steps):
            assert not values
            continue
        if np.all(steps.duration_ms > 0):  # else two steps start at once
            np.testing.assert_array_equal(held[np.searchsorted(at, start_us + 1e-5, side="right") - 1], column)
        assert held[-1] == 0
        pauses = np.append(start_us[1:] - end_us[:-1] > 1, True)
        np.testing.assert_array_equal(held[np.searchsorted(at, end_us[pauses] + 0.1, side="right") - 1], 0)


def expected_phases(records, request):
    """Us that a request spent by phase, step by step from the records."""
    steps = records.steps[records.requests.replica[request]]
    durations, spent = steps.duration_ms, defaultdict(float)
    first = records.requests.first_scheduled_step[request]
    spent["waiting"] = 1000 * (steps.start_ms[first] - records.requests.arrival_ms[request])
    segments = records.segments
    for i in np.flatnonzero(segments.request == request):
        span = slice(segments.first_step[i], segments.last_step[i] + 1)
        paused = steps.only_prefills[span] & (segments.phase[i] == Phase.DECODE)
        spent[NAMES[Phase(segments.phase[i])]] += 1000 * float(durations[span][~paused].sum())
        spent[NAMES[Phase.DECODE_LEFT_OUT]] += 1000 * float(durations[span][paused].sum())
        last = segments.phase[i]
    if records.async_delivery:
        spent[NAMES[Phase(last)]] -= 1000 * steps.draft_ms[records.requests.finish_step[request]]
    return spent


def check_requests(trace, process, records, replica):
    slices = trace.requests(process)
    here = records.requests.replica == replica
    done = np.flatnonzero(here & (records.requests.status == Status.COMPLETED))
    failed = np.flatnonzero(here & (records.requests.status == Status.FAILED))
    assert set(slices) == {f"request {request}" for request in done}
    assert {one.name for one in trace.moments.get(process, [])} == {f"request {r} refused" for r in failed}
    delivery_us = 1000 * records.delivery_ms(replica)
    for request in done:
        one = slices[f"request {request}"]
        arrival_us = 1000 * records.requests.arrival_ms[request]
        last_us = delivery_us[records.requests.finish_step[request]]
        assert one.start == pytest.approx(arrival_us, rel=1e-9, abs=2e-3)
        assert one.length == pytest.approx(last_us - arrival_us, rel=1e-9, abs=2e-3)
        assert one.args["e2el_ms"] == pytest.approx((last_us - arrival_us) / 1000, rel=1e-9, abs=1e-9)
        told = defaultdict(float)
        for span in one.inside:
            assert one.start <= span.start <= span.end <= one.end
            told[span.name] += span.length
        assert sum(told.values()) == pytest.approx(one.length, **NEAR)
        for name, us in expected_phases(records, request).items():
            assert told.pop(name, 0.0) == pytest.approx(us, rel=1e-9, abs=4e-3)
        assert not told
        (first_token,) = [moment for span in one.inside for moment in span.inside]
        token_us = delivery_us[records.requests.first_token_step[request]]
        assert first_token.name == "first token"
        assert first_token.start == pytest.approx(token_us, **NEAR)
        assert first_token.args["ttft_ms"] == one.args["ttft_ms"] == pytest.approx((token_us - arrival_us) / 1000)


def check_all(trace, arms):
    """arms: (name, records)."""
    expected = []
    for name, records in arms:
        for replica, steps in enumerate(records.steps):
            process = name if len(records.steps) == 1 else f"{name}, replica {replica}"
            expected.append(process)
            check_steps(trace, process, steps)
            check_counters(trace, process, steps)
            check_requests(trace, process, records, replica)
    assert trace.processes == expected


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_in_every_world_the_timeline_tells_what_the_records_tell(world):
    requests, runs, limits = world
    other = make_settings(max_num_seqs=4, max_num_batched_tokens=40, max_num_scheduled_tokens=40)
    arms = [("baseline", loop.simulate(requests, runs, other, COSTS))]
    arms.append(("speculative", loop.simulate(requests, runs, limits, COSTS)))
    trace, told = written(*((name, requests, records) for name, records in arms))
    check_all(trace, arms)
    assert told.steps == sum(len(steps) for _, records in arms for steps in records.steps)
    assert told.requests == 2 * len(requests)


@settings(max_examples=80, deadline=None)
@given(made_records())
def test_any_order_of_phases_is_told(made):
    records, stories = made
    # Made requests may arrive before 0.
    check_all(one_arm(records, workload(stories), window_s=(-1.0, np.inf)), [("a", records)])


@pytest.mark.parametrize("style", ["vllm", "fixed_batch"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_two_replicas_with_drafts(style, asynchronous):
    requests = make_requests([30] * 12, [20] * 12, concurrency=6)
    limits = make_settings(style=style, replicas=2, num_speculative_tokens=3, async_scheduling=asynchronous)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 4), limits, COSTS)
    trace = one_arm(records, requests)
    assert trace.processes == ["a, replica 0", "a, replica 1"]
    check_all(trace, [("a", records)])
    hosts = [one.name for slices in trace.threads.values() for step in slices for one in step.inside]
    assert ("host" in hosts) is not asynchronous  # the device takes longer than the host and hides it


def test_a_preempted_request_is_seen_to_start_again():
    requests = make_requests([40] * 4, [60] * 4)
    limits = make_settings(num_gpu_blocks=16)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 1), limits, COSTS)
    assert records.requests.preemptions.sum() > 0
    trace = one_arm(records, requests)
    check_all(trace, [("a", records)])
    for request in np.flatnonzero(records.requests.preemptions):
        names = [span.name for span in trace.requests("a")[f"request {request}"].inside]
        where = names.index("preempted")
        assert names[where - 1 : where + 2] == ["decode", "preempted", "prefill"]


def test_users_share_as_many_lanes_as_there_are_users():
    requests = make_requests([20] * 40, [9] * 40, concurrency=5)
    limits = make_settings(num_speculative_tokens=3, async_scheduling=True)
    records = loop.simulate(requests, make_runs(requests, np.random.default_rng(1), 4), limits, COSTS)
    trace = one_arm(records, requests)
    assert [thread for _, thread in trace.threads] == ["steps", *(f"requests, lane {i}" for i in range(1, 6))]


def test_the_lowest_free_lane_is_taken_and_rounding_opens_no_other():
    lanes = Lanes()
    late = 10.0 + 1e-9  # ends as records tell them, a little after the next arrivals
    times = [(0.0, late), (1.0, 30.0), (2.0, 5.0), (3.0, late), (10.0, 12.0), (10.0, 40.0), (10.0, 40.0)]
    taken = [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (0, late), (2, 10.0), (3, late)]
    assert [lanes.take(*one) for one in times] == taken
    assert lanes.take(20.0, 21.0) == (0, 20.0)
    assert lanes.count == 4


def test_a_prefill_that_lets_decodes_wait_is_seen():
    """Request 0 decodes, is left out of two steps that only prefill request 1, and decodes on."""
    parts = [[1, 5, 5, 0, 0, 0]] * 2 + [[1, 20, 0, 0, 0, 0]] * 2 + [[1, 6, 6, 0, 0, 2]]
    counted = {"decode_rows": [0, 1, 0, 0, 2], "prefill_rows": [1, 0, 1, 1, 0]}
    stories = [story("FDddD"), story("PFD", arrival_ms=7.0, first_step=2)]
    records = made_by_hand([made_steps(parts, **counted)], stories)
    trace = one_arm(records, workload(stories))
    spans = {name: [(s.name, s.length) for s in one.inside] for name, one in trace.requests("a").items()}
    assert spans["request 0"] == [("prefill", 6e3), ("decode", 6e3), ("decode left out", 42e3), ("decode", 9e3)]
    assert spans["request 1"] == [("waiting", 5e3), ("prefill", 42e3), ("decode", 9e3)]
    steps = trace.threads["a", "steps"]
    assert [one.name for one in steps] == ["prefill step", "decode step", "prefill step", "prefill step", "decode step"]
    assert [phase.name for phase in steps[2].inside] == ["host", "prefill"]
    assert [phase.name for phase in steps[4].inside] == ["host", "verification", "drafting"]


def drafting_steps(draft_tokens):
    rows = [0, 2, 4, 4]
    columns = {"decode_rows": rows, "draft_tokens": draft_tokens, "prefill_rows": [1, 0, 1, 0]}
    return made_by_hand([made_steps([[1, 5, 2, 0, 0, 1]] * 4, **columns)], [story("FDDD")])


def test_drafts_per_row_are_shown_where_they_vary():
    requests = workload([story("FDDD")])
    assert ("a", "drafts per decode row") not in one_arm(drafting_steps([0, 6, 12, 12]), requests).counters
    varying = one_arm(drafting_steps([0, 6, 6, 4]), requests)
    assert varying.counters["a", "drafts per decode row"] == [(7e3, 3.0), (14e3, 1.5), (21e3, 1.0)]
    assert [one.name for one in varying.threads["a", "steps"]][2:] == ["mixed step", "decode step"]


def test_a_window_keeps_its_steps_and_cuts_requests():
    parts = [[0, 10, 10, 0, 0, 0]] * 6
    stories = [story("FDDDDD"), story("FD", arrival_ms=25.0, first_step=3), story("F"), story("")]
    records = made_by_hand([made_steps(parts, running=np.arange(1, 7))], stories)
    trace, told = written(("a", workload(stories), records), window_s=(0.022, 0.048))
    assert [one.args["step"] for one in trace.threads["a", "steps"]] == [2, 3, 4]
    assert trace.counters["a", "requests running"] == [(20e3, 3), (30e3, 4), (40e3, 5)]
    cut = {name: [(s.name, s.start, s.end) for s in one.inside] for name, one in trace.requests("a").items()}
    assert cut == {
        "request 0": [("decode", 22e3, 48e3)],
        "request 1": [("waiting", 25e3, 30e3), ("prefill", 30e3, 40e3), ("decode", 40e3, 48e3)],
    }
    assert trace.requests("a")["request 0"].args["e2el_ms"] == 60
    assert (told.steps, told.requests, trace.moments) == (3, 2, {})
