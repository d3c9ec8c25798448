"""`duration_s`, and the ways in which a trace gives its arrivals: recorded, spread, scaled, or lengths at a rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sim.inputs.errors import InputError
from sim.inputs.scenario import Workload
from sim.workload import build
from sim.workload.build import build_requests
from sim.workload.trace_rows import trace_warnings

WORKLOAD = TypeAdapter(Workload)
LENGTHS = {"prompt_tokens": 100, "output_tokens": {"kind": "geometric", "mean": 50}}
COLUMNS = ("arrival_ms", "prompt_tokens", "output_tokens", "slice_index", "prefix_hit_tokens")


def requests(arrivals, base_dir=None, seed=1, replication=0, **extent):
    slices = [{"name": "a"} | ({} if arrivals["kind"] == "trace" else LENGTHS)]
    workload = WORKLOAD.validate_python({"arrivals": arrivals, "slices": slices} | extent)
    return build_requests(workload, base_dir or Path(), seed, replication)


def vidur_trace(tmp_path, seconds, name="t.csv"):
    rows = (f"{second},{100 + row},{10 + row}\n" for row, second in enumerate(seconds))
    (tmp_path / name).write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n" + "".join(rows))
    return {"kind": "trace", "path": name}


@settings(deadline=None, max_examples=60)
@given(
    seconds=st.floats(1, 200),
    rate=st.floats(0.1, 50),
    cv=st.one_of(st.none(), st.floats(0.1, 5)),
    seed=st.integers(0, 999),
)
def test_a_duration_holds_the_first_requests_of_a_longer_run(seconds, rate, cv, seed):
    arrivals = {"kind": "poisson", "rate": rate} if cv is None else {"kind": "gamma", "rate": rate, "cv": cv}
    listed = requests(arrivals, requests=12_000, seed=seed)
    count = int(np.searchsorted(listed.arrival_ms, seconds * 1000))
    if count == 0:
        with pytest.raises(InputError, match=r"workload.duration_s: no request arrives within"):
            requests(arrivals, duration_s=seconds, seed=seed)
        return
    timed = requests(arrivals, duration_s=seconds, seed=seed)
    assert len(timed) == count
    assert timed.send_until_ms is None
    assert all(np.array_equal(getattr(timed, name), getattr(listed, name)[:count]) for name in COLUMNS)


def test_as_many_arrive_as_the_rate_says():
    counts = [len(requests({"kind": "poisson", "rate": 5}, duration_s=100, replication=one)) for one in range(200)]
    assert np.mean(counts) == pytest.approx(500, abs=4 * 500**0.5 / 200**0.5)
    assert np.var(counts) == pytest.approx(500, rel=0.4)


def test_more_requests_than_a_replication_holds_are_refused(monkeypatch):
    monkeypatch.setattr(build, "MAX_REQUESTS", 300)
    assert len(requests({"kind": "poisson", "rate": 2}, duration_s=100)) < 300
    with pytest.raises(InputError, match="at most 300, give a shorter time"):
        requests({"kind": "poisson", "rate": 4}, duration_s=100)
    with pytest.raises(InputError, match="at most 300"):  # nearly all gaps of this process are 0
        requests({"kind": "gamma", "rate": 1, "cv": 1e9}, duration_s=1e6)


def test_closed_users_stop_at_the_end_of_the_time():
    built = requests({"kind": "closed", "concurrency": 3}, duration_s=7.5, requests=50)
    assert built.send_until_ms == 7500
    assert len(built) == 50
    cut = built.first(20)
    assert (len(cut), cut.send_until_ms, cut.concurrency) == (20, 7500, 3)
    assert cut.output_tokens.tolist() == built.output_tokens[:20].tolist()


def test_a_trace_is_cut_at_a_duration_after_window_and_scale(tmp_path):
    trace = vidur_trace(tmp_path, [0, 1, 2, 3, 4, 10])
    assert requests(trace, tmp_path, duration_s=3).prompt_tokens.tolist() == [100, 101, 102]
    faster = trace | {"scale": 2, "window_s": [1, 9]}
    assert requests(faster, tmp_path, duration_s=1.5).arrival_ms.tolist() == [0, 500, 1000]
    assert len(requests(trace, tmp_path, duration_s=1e6)) == 6
    with pytest.raises(InputError, match="no request arrives within 1 s"):
        requests(trace | {"window_s": [5, 20]}, tmp_path, duration_s=1)


# --- lengths at a rate ---------------------------------------------------------------------------------------------


def test_lengths_of_a_trace_at_poisson_arrivals(tmp_path):
    trace = vidur_trace(tmp_path, np.zeros(4000)) | {"rate": 8}
    built = requests(trace, tmp_path)
    gaps = np.diff(built.arrival_ms, prepend=0)
    assert built.prompt_tokens.tolist() == list(range(100, 4100))
    assert gaps.mean() == pytest.approx(125, rel=0.06)
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.06)
    other = requests(trace, tmp_path, replication=1)
    assert not np.array_equal(built.arrival_ms, other.arrival_ms)
    assert np.array_equal(built.output_tokens, other.output_tokens)
    timed = requests(trace, tmp_path, duration_s=100)
    assert np.array_equal(timed.arrival_ms, built.arrival_ms[: len(timed)])
    assert timed.arrival_ms[-1] < 100_000 <= built.arrival_ms[len(timed)]
    assert requests(trace, tmp_path, requests=7).output_tokens.tolist() == list(range(10, 17))


def test_a_trace_of_lengths_alone_needs_a_rate(tmp_path):
    (tmp_path / "l.csv").write_text("num_prefill_tokens,num_decode_tokens\n" + "5,6\n" * 30)
    lengths = {"kind": "trace", "path": "l.csv"}
    assert len(requests(lengths | {"rate": 2}, tmp_path)) == 30
    for more, field in (
        ({}, "workload.arrivals.path"),
        ({"window_s": [0, 5]}, "workload.arrivals.path"),
        ({"window_s": [0, 5], "rate": 2}, "workload.arrivals.window_s"),
    ):
        with pytest.raises(InputError) as caught:
            requests(lengths | more, tmp_path)
        assert [problem.field for problem in caught.value.problems] == [field]
    for extent, field in (({"duration_s": 1000}, "workload.duration_s"), ({"requests": 31}, "workload.requests")):
        with pytest.raises(InputError, match=rf"{field}: .*of a trace that has 30 there"):
            requests(lengths | {"rate": 2}, tmp_path, **extent)


# --- coarse clocks and hashes ----------------------------------------------------------------------------------------


def coarse(tmp_path):
    return vidur_trace(tmp_path, np.repeat(np.arange(0, 200, 2), 4))


def test_bursts_of_a_coarse_clock_are_spread_by_a_stream_of_their_own(tmp_path):
    trace = coarse(tmp_path)
    kept = requests(trace | {"spread_bursts": False}, tmp_path)
    assert kept.arrival_ms.tolist() == np.repeat(np.arange(0, 200_000, 2000.0), 4).tolist()
    spread = requests(trace, tmp_path)
    again, other = requests(trace, tmp_path), requests(trace, tmp_path, replication=1)
    assert np.array_equal(spread.arrival_ms, again.arrival_ms)
    assert not np.array_equal(spread.arrival_ms, other.arrival_ms)
    assert np.all((spread.arrival_ms >= kept.arrival_ms) & (spread.arrival_ms < kept.arrival_ms + 2000))
    assert all(np.array_equal(getattr(spread, name), getattr(kept, name)) for name in COLUMNS[1:])
    (warning,) = trace_warnings(WORKLOAD.validate_python({"arrivals": trace, "slices": [{"name": "a"}]}), tmp_path)
    assert "ticks every 2 s, 75% of its gaps are 0" in warning
    assert "spread_bursts: false" in warning


def test_windows_and_scale_move_no_spread_arrival(tmp_path):
    trace = coarse(tmp_path)
    whole = requests(trace, tmp_path)
    part = requests(trace | {"window_s": [20, 60], "scale": 4}, tmp_path)
    assert part.prompt_tokens.tolist() == list(range(140, 220))
    assert part.arrival_ms == pytest.approx((whole.arrival_ms[40:120] - 20_000) / 4)
    timed = requests(trace, tmp_path, duration_s=19.5)
    assert np.array_equal(timed.arrival_ms, whole.arrival_ms[:40])


def test_no_warning_where_nothing_was_spread(tmp_path):
    fine = vidur_trace(tmp_path, np.cumsum(np.random.default_rng(1).exponential(1, 100)), "fine.csv")
    for arrivals in (fine, coarse(tmp_path) | {"rate": 5}, coarse(tmp_path) | {"spread_bursts": False}):
        workload = WORKLOAD.validate_python({"arrivals": arrivals, "slices": [{"name": "a"}]})
        assert trace_warnings(workload, tmp_path) == []


def test_block_hashes_follow_the_rows_of_a_window(tmp_path):
    lines = [
        f'{{"timestamp": {1000 * row}, "input_length": {512 * (1 + row % 3)}, "output_length": 5, '
        f'"hash_ids": {list(range(row, row + 1 + row % 3))}}}'
        for row in range(12)
    ]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    built = requests({"kind": "trace", "path": "m.jsonl", "window_s": [2, 9]}, tmp_path, requests=3)
    assert built.hash_block_tokens == 512
    assert built.hash_offsets.tolist() == [0, 3, 4, 6]
    assert built.hash_ids.tolist() == [2, 3, 4, 3, 4, 5]
    assert requests({"kind": "poisson", "rate": 1}, requests=3).hash_ids is None
