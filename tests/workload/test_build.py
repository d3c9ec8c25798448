"""Requests of a scenario: slices, traces, and which change moves which random draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sim.inputs.errors import InputError, Problem
from sim.inputs.scenario import Workload
from sim.workload.build import build_requests

WORKLOAD = TypeAdapter(Workload)
POISSON = {"kind": "poisson", "rate": 5}
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(
    f"2023-11-16 18:00:{second:02d}.5,{100 + second},{10 + second}" for second in range(0, 40, 2)
)


def part(name="chat", **changes):
    return {"name": name, "prompt_tokens": 100, "output_tokens": {"kind": "geometric", "mean": 50}} | changes


def requests(*slices, arrivals=POISSON, count=2000, seed=1, replication=0, base_dir=Path(), **more):
    workload = WORKLOAD.validate_python({"requests": count, "arrivals": arrivals, "slices": slices or [part()]})
    return build_requests(workload, base_dir, seed, replication, **more)


def trace_requests(tmp_path, count=None, slices=(), **arrivals):
    (tmp_path / "trace.csv").write_text(TRACE)
    slices = slices or [{"name": "all"}]
    arrivals = {"kind": "trace", "path": "trace.csv"} | arrivals
    replication = arrivals.pop("replication", 0)
    return requests(*slices, arrivals=arrivals, count=count, base_dir=tmp_path, replication=replication)


COLUMNS = ("arrival_ms", "prompt_tokens", "output_tokens", "slice_index", "prefix_hit_tokens")


def differing(left, right):
    return {name for name in COLUMNS if not np.array_equal(getattr(left, name), getattr(right, name))}


def test_slices_are_drawn_by_share():
    built = requests(
        part("a", share=0.5), part("never", share=0), part("b", share=0.3), part("c", share=0.2), count=40_000
    )
    assert np.bincount(built.slice_index) / 40_000 == pytest.approx([0.5, 0, 0.3, 0.2], abs=0.01)


def test_lengths_and_prefix_hits_follow_the_slice():
    built = requests(
        part("a", share=0.5, prompt_tokens=7, output_tokens=3, prefix_hit_tokens=7),
        part("b", share=0.5, prompt_tokens=90, output_tokens=5, prefix_hit_tokens=64),
    )
    first = built.slice_index == 0
    for column, a, b in (("prompt_tokens", 7, 90), ("output_tokens", 3, 5), ("prefix_hit_tokens", 6, 64)):
        assert set(getattr(built, column)[first].tolist()) == {a}
        assert set(getattr(built, column)[~first].tolist()) == {b}


def test_a_closed_loop_keeps_its_users():
    built = requests(arrivals={"kind": "closed", "concurrency": 16, "think_time_s": 1.5})
    assert (built.concurrency, built.think_time_ms) == (16, 1500)
    assert not built.arrival_ms.any()
    assert requests().concurrency is None


def test_the_same_seed_gives_the_same_requests_and_others_differ():
    slices = part("a", share=0.5), part("b", share=0.5)
    assert differing(requests(*slices), requests(*slices)) == set()
    moved = {"arrival_ms", "output_tokens", "slice_index"}
    assert differing(requests(*slices), requests(*slices, seed=2)) == moved
    assert differing(requests(*slices), requests(*slices, replication=1)) == moved


def test_a_changed_slice_moves_no_other_draw():
    before = requests(part("a", share=0.5), part("b", share=0.5))
    after = requests(part("a", share=0.5), part("b", share=0.5, output_tokens={"kind": "geometric", "mean": 80}))
    assert differing(before, after) == {"output_tokens"}
    first = before.slice_index == 0
    assert np.array_equal(before.output_tokens[first], after.output_tokens[first])
    assert np.all(before.output_tokens[~first] <= after.output_tokens[~first])


def test_other_arrivals_move_no_length_or_slice():
    slices = part("a", share=0.5), part("b", share=0.5)
    for arrivals in ({"kind": "gamma", "rate": 5, "cv": 3}, {"kind": "at_once"}):
        assert differing(requests(*slices), requests(*slices, arrivals=arrivals)) == {"arrival_ms"}


def test_a_trace_brings_arrivals_and_lengths(tmp_path):
    built = trace_requests(tmp_path)
    assert built.arrival_ms.tolist() == [2000.0 * row for row in range(20)]
    assert built.prompt_tokens.tolist() == [100 + second for second in range(0, 40, 2)]
    assert built.output_tokens.tolist() == [10 + second for second in range(0, 40, 2)]
    assert built.concurrency is None


def test_a_trace_is_windowed_in_its_own_seconds_then_scaled(tmp_path):
    built = trace_requests(tmp_path, window_s=[3, 10], scale=2)
    assert built.prompt_tokens.tolist() == [104, 106, 108]
    assert built.arrival_ms.tolist() == [500, 1500, 2500]
    assert trace_requests(tmp_path, 2, window_s=[4, 10]).arrival_ms.tolist() == [0, 2000]


def test_only_the_slices_of_a_trace_change_between_replications(tmp_path):
    slices = {"name": "a", "share": 0.5}, {"name": "b", "share": 0.5, "prefix_hit_tokens": 105}
    built = trace_requests(tmp_path, slices=slices)
    assert differing(built, trace_requests(tmp_path, slices=slices, replication=1)) == {
        "slice_index",
        "prefix_hit_tokens",
    }
    expected = np.where(built.slice_index == 1, np.minimum(105, built.prompt_tokens - 1), 0)
    assert built.prefix_hit_tokens.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("count", "arrivals", "field", "words"),
    [
        (None, {"path": "nowhere.csv"}, "workload.arrivals.path", "nowhere.csv"),
        (None, {"path": "."}, "workload.arrivals.path", "directory"),
        (None, {"window_s": [38.5, 60]}, "workload.arrivals.window_s", "38 seconds"),
        (None, {"scale": 1e-308}, "workload.arrivals", "after inf s"),
        (21, {}, "workload.requests", "at most 20"),
        (4, {"window_s": [0, 5]}, "workload.requests", "at most 3"),
    ],
)
def test_what_a_trace_cannot_give(tmp_path, count, arrivals, field, words):
    with pytest.raises(InputError) as caught:
        trace_requests(tmp_path, count, **arrivals)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert words in str(problem)


def test_problems_carry_the_place_that_the_caller_knows(tmp_path):
    def place(field, what, rule, remedy):
        return Problem("scenario.yaml", 7, 3, field, what, rule, remedy)

    missing = {"kind": "empirical", "path": "none.txt"}
    with pytest.raises(InputError) as caught:
        requests(part(prompt_tokens=missing, output_tokens=missing), base_dir=tmp_path, problem=place)
    fields = [(problem.file, problem.line, problem.field) for problem in caught.value.problems]
    assert fields == [
        ("scenario.yaml", 7, "workload.slices.0.output_tokens.path"),
        ("scenario.yaml", 7, "workload.slices.0.prompt_tokens.path"),
    ]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**63 - 1), count=st.integers(1, 60), more=st.integers(0, 60), hit=st.integers(0, 200))
def test_every_request_is_possible_and_keeps_its_place_in_a_longer_run(seed, count, more, hit):
    slices = part("a", share=0.5, prefix_hit_tokens=hit), part("b", share=0.5, prompt_tokens=1)
    built = requests(*slices, count=count, seed=seed)
    assert np.all(np.diff(built.arrival_ms) >= 0)
    assert np.all(built.output_tokens >= 1)
    assert np.all((built.prefix_hit_tokens >= 0) & (built.prefix_hit_tokens < built.prompt_tokens))
    longer = requests(*slices, count=count + more, seed=seed)
    assert all(np.array_equal(getattr(built, name), getattr(longer, name)[:count]) for name in COLUMNS)
