"""Overload on systems whose limit is known: M/M/1, and processor sharing in discrete steps."""

import heapq

import numpy as np
import pytest
from hand_made import counts

from sim.analysis.overload import detect_overload, judge_overload, overload_evidence
from sim.engine.records import Records, RequestRecords, Segments, Steps

SEEDS = range(20)


def as_records(arrival_ms, output_tokens, finish_step, start_ms, step_ms, running, waiting, tokens):
    """One replica with the columns that overload is judged by; the rest is zero."""
    given = {"start_ms": start_ms, "target_ms": step_ms, "running": running, "waiting": waiting}
    given |= {"committed_tokens": tokens}
    none = {name: np.zeros(len(start_ms), int) for name in Steps.__dataclass_fields__ if name not in given}
    given_requests = {"arrival_ms": arrival_ms, "output_tokens": output_tokens, "finish_step": finish_step}
    zeros = {f: np.zeros(len(arrival_ms), int) for f in RequestRecords.__dataclass_fields__ if f not in given_requests}
    empty = np.zeros(0, int)
    segments = Segments(empty, empty, empty, empty, empty.astype(bool))
    requests = RequestRecords(**given_requests, **zeros)
    return Records([Steps(**given, **none)], requests, segments, counts(), False, None)


def single_server(arrival_ms, service_ms):
    """First come, first served: one step and one token a request; departures by Lindley's recursion."""
    work = np.cumsum(service_ms)
    departure = work + np.maximum.accumulate(arrival_ms - (work - service_ms))
    start, count = departure - service_ms, len(arrival_ms)
    waiting = np.searchsorted(arrival_ms, start, side="right") - np.arange(count) - 1
    one = np.ones(count, int)
    return as_records(arrival_ms, one, np.arange(count), start, service_ms, one, waiting, one)


def mm1(seed, count, rho, mean_service_ms=10.0):
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(mean_service_ms / rho, count))
    return single_server(arrivals, rng.exponential(mean_service_ms, count))


def shared_processor(
    seed, count, rho, fixed_ms=8.0, per_request_ms=0.2, tokens=100, max_num_seqs=10**9, geometric=True
):
    """A step takes fixed + per_request * batch, one token for each request; rho = lambda * tokens * per_request."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(tokens * per_request_ms / rho, count)).tolist()
    lengths = rng.geometric(1 / tokens, count) if geometric else np.full(count, tokens)
    ends, finish_step = [], np.zeros(count, int)
    starts, batches, waitings = [], [], []
    now, arrived, admitted, step = 0.0, 0, 0, 0
    while ends or admitted < count:
        while arrived < count and arrivals[arrived] <= now:
            arrived += 1
        while admitted < arrived and len(ends) < max_num_seqs:
            heapq.heappush(ends, (step + int(lengths[admitted]) - 1, admitted))
            admitted += 1
        if not ends:
            now = arrivals[arrived]
            continue
        starts.append(now)
        batches.append(len(ends))
        waitings.append(arrived - admitted)
        now += fixed_ms + per_request_ms * len(ends)
        while ends and ends[0][0] == step:
            finish_step[heapq.heappop(ends)[1]] = step
        step += 1
    batch = np.array(batches)
    step_ms = fixed_ms + per_request_ms * batch
    return as_records(
        np.array(arrivals), lengths, finish_step, np.array(starts), step_ms, batch, np.array(waitings), batch
    )


def flagged(make):
    return sum(detect_overload([make(seed)]).detected for seed in SEEDS)


@pytest.mark.parametrize(("count", "rho"), [(1000, 0.8), (1000, 0.9), (5000, 0.9), (20000, 0.97)])
def test_a_single_server_below_its_limit_is_not_overloaded(count, rho):
    assert flagged(lambda seed: mm1(seed, count, rho)) == 0


@pytest.mark.parametrize(("count", "rho"), [(8000, 1.1), (1000, 1.3), (400, 3.0)])
def test_a_single_server_above_its_limit_is_overloaded(count, rho):
    assert flagged(lambda seed: mm1(seed, count, rho)) == len(SEEDS)


@pytest.mark.parametrize(("count", "rho", "expected"), [(4000, 0.9, 0), (4000, 1.3, 20)])
def test_bursts_move_the_limit_no_further_than_chance(count, rho, expected):
    """Gamma gaps of CV 3: the work offered varies three times as much as under Poisson."""

    def bursty(seed):
        rng = np.random.default_rng(seed)
        return single_server(np.cumsum(rng.gamma(1 / 9, 90.0 / rho, count)), rng.exponential(10.0, count))

    assert flagged(bursty) == expected


@pytest.mark.parametrize("rho", [1.1, 1.3, 3.0])
def test_the_carried_rate_is_the_service_rate(rho):
    rates = [detect_overload([mm1(seed, 20000, rho)]).carried_request_rate for seed in SEEDS]
    assert rates == pytest.approx([100.0] * len(SEEDS), rel=0.05)


@pytest.mark.parametrize("geometric", [True, False])
@pytest.mark.parametrize(("count", "rho"), [(400, 0.5), (400, 0.8), (4000, 0.95)])
def test_a_batch_that_is_still_filling_is_not_overloaded(count, rho, geometric):
    """The batch tends to (fixed / per_request) rho / (1 - rho): N grows through most of these runs."""
    assert flagged(lambda seed: shared_processor(seed, count, rho, geometric=geometric)) == 0


@pytest.mark.parametrize(("rho", "expected"), [(0.97, 0), (1.03, 20)])
def test_three_percent_around_the_limit_of_sharing(rho, expected):
    """By chance 20,000 arrivals offer 0.7 % more or less than they should: the limit is told within 3 %."""
    assert flagged(lambda seed: shared_processor(seed, 20000, rho, tokens=20, geometric=False)) == expected


@pytest.mark.parametrize(("rho", "expected"), [(0.55, 0), (0.7, 20)])
def test_the_limit_of_a_full_batch_counts(rho, expected):
    """64 at a time: tokens leave at 64 / (8 + 0.2 * 64) per ms, at rho = 0.615."""
    runs = [detect_overload([shared_processor(seed, 2000, rho, max_num_seqs=64, tokens=50)]) for seed in SEEDS]
    assert sum(run.detected for run in runs) == expected
    carried_per_s = 64 / (8 + 0.2 * 64) / 50 * 1e3
    carried = [run.carried_request_rate for run in runs if run.detected]
    assert carried == pytest.approx([carried_per_s] * expected, rel=0.08)


def test_replications_are_judged_together():
    """A limit passed by 3 % is lost in the noise of one short run, and shown by many."""
    runs = [mm1(seed, 2000, 1.03) for seed in range(40)]
    assert not all(detect_overload([run]).detected for run in runs)
    together = detect_overload(runs)
    assert together.detected
    assert together.carried_request_rate == pytest.approx(100.0, rel=0.05)


def test_a_rush_that_is_worked_off_is_not_overload():
    """Twice the limit for a third of the time, then a third of it: the backlog is gone before arrivals end."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        gaps = np.concatenate([rng.exponential(5.0, 2000), rng.exponential(30.0, 1500)])
        made = single_server(np.cumsum(gaps), rng.exponential(10.0, len(gaps)))
        assert not detect_overload([made]).detected


def test_bursts_of_long_requests_are_not_overload():
    """30 long ones at once and 100 short ones, every second: what waits costs more than what is offered on average."""
    second = np.concatenate([np.zeros(30), np.arange(650.0, 1000.0, 3.5)])
    arrivals = np.concatenate([second + 1000 * i for i in range(20)])
    service = np.tile(np.repeat([20.0, 1.0], [30, 100]), 20)
    assert detect_overload([single_server(arrivals, service)]) == (False, None)


def test_chance_alone_rarely_looks_like_overload():
    """3 % below the limit, 4,000 geometric lengths offer 2.2 % more or less work than they should."""
    runs = (shared_processor(seed, 4000, 0.97, tokens=50) for seed in range(100))
    assert sum(detect_overload([run]).detected for run in runs) <= 3


def side_by_side(one, other):
    """Two replicas, each with its own requests."""
    columns = {
        name: np.concatenate([getattr(part.requests, name) for part in (one, other)])
        for name in RequestRecords.__dataclass_fields__
    }
    columns["replica"] = np.repeat([0, 1], [len(one.requests), len(other.requests)])
    requests = RequestRecords(**columns)
    return Records([*one.steps, *other.steps], requests, one.segments, one.counts, False, None)


@pytest.mark.parametrize("order", [1, -1])
def test_pools_do_not_help_each_other_out(order):
    """One at twice its limit and one at a tenth: together they would have room enough."""
    busy, idle = mm1(1, 8000, 2.0), mm1(2, 400, 0.1)
    both = side_by_side(*(busy, idle)[::order])
    assert not judge_overload([overload_evidence(side_by_side(idle, mm1(3, 400, 0.1)), [1, 1])]).detected
    found = judge_overload([overload_evidence(both, [1, 1])])
    assert found.detected
    assert found.carried_request_rate == pytest.approx(100 + 10, rel=0.05)


def test_a_pool_that_is_hardly_used_hides_nothing():
    found = judge_overload([overload_evidence(side_by_side(mm1(1, 8000, 2.0), mm1(2, 5, 0.1)), [1, 1])])
    assert found.detected
    assert found.carried_request_rate == pytest.approx(100, rel=0.05)


def test_too_little_to_tell():
    assert detect_overload([mm1(1, 39, 5.0)]) == (False, None)
    assert detect_overload([single_server(np.zeros(100), np.ones(100))]) == (False, None)
