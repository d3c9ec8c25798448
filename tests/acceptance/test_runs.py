"""Accepted runs: exact theory, exact extremes, and common random numbers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from round_logs import requests_of, round_log

from sim.acceptance.build import build_runs, no_acceptance
from sim.inputs.acceptance_models import Acceptance

ACCEPTANCE = TypeAdapter(Acceptance)
MEMORY = {"phi": 0.9, "sd": 0.8}
MODELS = [
    {"kind": "iid", "alpha": 0.7},
    {"kind": "rate", "acceptance_rate": 0.6, "num_speculative_tokens": 4},
    {"kind": "per_position", "conditional": [0.8, 0.6], "sigma": 0.5},
    {"kind": "per_position", "conditional": [0.8, 0.6], "sigma": 0.5, "memory": MEMORY},
]


def model(value):
    return None if value is None else ACCEPTANCE.validate_python(value)


def runs_of(requests, *models, depth=4, seed=1, replication=0):
    return build_runs(requests, [model(value) for value in models], depth, seed, replication)


def iid(alpha):
    return {"kind": "iid", "alpha": alpha}


@lru_cache
def iid_log(alpha, k, output_tokens):
    requests = requests_of([output_tokens] * 4_000)
    return round_log(runs_of(requests, iid(alpha), depth=k + 1, seed=9), requests, k)


@pytest.mark.parametrize(
    ("alpha", "k", "mean", "variance"), [(0.7, 3, 2.533, 1.5349), (0.8, 5, 3.68928, 3.8641), (0.6, 4, 2.3056, 1.9626)]
)
def test_tokens_per_round(alpha, k, mean, variance):
    counts = iid_log(alpha, k, 129).accepted_counts
    tokens = np.repeat(np.arange(1, k + 2), counts)
    assert mean == pytest.approx((1 - alpha ** (k + 1)) / (1 - alpha), abs=1e-4)
    assert abs(tokens.mean() - mean) <= 4 * (variance / len(tokens)) ** 0.5
    squares = (tokens - mean) ** 2
    assert abs(tokens.var() - variance) <= 4 * squares.std() / len(tokens) ** 0.5 + 1e-4


@pytest.mark.parametrize(
    ("tokens", "alpha", "k", "mean", "variance", "p95"),
    [(128, 0.7, 3, 50.955, 12.184, 57), (100, 0.8, 5, 27.612, 7.841, 32)],
)
def test_rounds_to_commit_a_number_of_tokens(tokens, alpha, k, mean, variance, p95):
    rounds = iid_log(alpha, k, tokens + 1).rounds  # the prefill emits the first token
    assert abs(rounds.mean() - mean) <= 4 * (variance / len(rounds)) ** 0.5
    assert rounds.var() == pytest.approx(variance, rel=4 * (2 / len(rounds)) ** 0.5)
    assert np.percentile(rounds, 95, method="inverted_cdf") == p95


def test_a_dashboard_rate_comes_back():
    requests = requests_of([200] * 2_000)
    runs = runs_of(requests, MODELS[1], depth=5)
    counts = round_log(runs, requests, 4).accepted_counts
    assert np.arange(5) @ counts / (4 * counts.sum()) == pytest.approx(0.6, abs=0.004)
    assert runs.measured_depth == 4


def test_layout_is_one_byte_a_position_in_request_order():
    requests = requests_of([3, 1, 4])
    runs = runs_of(requests, iid(1.0), depth=3)
    assert runs.offsets.tolist() == [0, 3, 4]
    assert runs.accepted.dtype == np.uint8
    assert runs.accepted.tolist() == [3] * 8
    assert (runs.drafted, runs.depth, runs.measured_depth) == (None, 3, None)


def test_without_speculation_nothing_is_accepted_and_nothing_stored():
    requests = requests_of([300, 1, 200])
    runs = no_acceptance(requests)
    assert runs.offsets.tolist() == [0, 300, 301]
    assert len(runs.accepted) == 501
    assert not runs.accepted.any()
    assert runs.accepted.strides == (0,)


@pytest.mark.parametrize("spread", [{}, {"sigma": 1.0}, {"sigma": 1.0, "memory": MEMORY}])
def test_probabilities_0_and_1_are_exact(spread):
    requests = requests_of([400] * 50)
    vector = {"kind": "per_position", "conditional": [1.0, 1.0, 0.0, 0.9]} | spread
    assert set(runs_of(requests, vector, depth=6).accepted.tolist()) == {2}
    always = {"kind": "per_position", "conditional": [1.0]} | spread
    assert set(runs_of(requests, always, depth=65).accepted.tolist()) == {65}
    assert set(runs_of(requests, iid(0.0)).accepted.tolist()) == {0}


def test_each_slice_has_its_own_model():
    requests = requests_of([50] * 90, np.arange(90) % 3)
    runs = runs_of(requests, iid(1.0), None, MODELS[2])
    by_request = runs.accepted.reshape(90, 50)
    assert np.all(by_request[0::3] == 4)
    assert np.all(by_request[1::3] == 0)
    assert set(by_request[2::3].ravel().tolist()) == {0, 1, 2, 3, 4}
    assert runs.measured_depth == 2


def test_a_shift_belongs_to_a_request():
    """sigma spreads the requests' means; without it they differ by chance alone."""
    requests = requests_of([400] * 400)
    spread = {"kind": "per_position", "conditional": [0.6, 0.6, 0.6]}

    def variance(value):
        return runs_of(requests, value).accepted.reshape(400, 400).mean(axis=1).var()

    assert variance(spread | {"sigma": 0.5}) > 5 * variance(spread)


def test_first_position_acceptance_falls_with_k_where_there_is_memory():
    requests = requests_of([256] * 3_000)

    def first(value, k):
        return round_log(runs_of(requests, value, depth=9), requests, k).conditional[0]

    memory = {"kind": "per_position", "conditional": [0.7] * 4, "memory": {"phi": 0.9, "sd": 1.0}}
    assert first(memory, 1) > first(memory, 4) + 0.01 > first(memory, 8) + 0.015
    without = {"kind": "per_position", "conditional": [0.7] * 4}
    assert first(without, 8) == pytest.approx(first(without, 1), abs=0.005)


def test_memory_ties_neighbouring_positions_together():
    requests = requests_of([500] * 400)

    def correlation(value, lag):
        accepted = runs_of(requests, value, depth=1).accepted.reshape(400, 500).astype(float)
        return np.corrcoef(accepted[:, :-lag].ravel(), accepted[:, lag:].ravel())[0, 1]

    tied = {"kind": "per_position", "conditional": [0.6], "memory": {"phi": 0.9, "sd": 1.2}}
    assert correlation(tied, 1) > correlation(tied, 8) + 0.05 > 0.1
    assert abs(correlation({"kind": "per_position", "conditional": [0.6]}, 1)) < 0.01


@settings(deadline=None, max_examples=40)
@given(
    value=st.sampled_from(MODELS),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    depth=st.integers(1, 12),
    deeper=st.integers(1, 52),
    seed=st.integers(0, 2**63 - 1),
)
def test_a_larger_depth_moves_nothing(value, lengths, depth, deeper, seed):
    requests = requests_of(lengths)
    shallow = runs_of(requests, value, depth=depth, seed=seed).accepted
    deep = runs_of(requests, value, depth=depth + deeper, seed=seed).accepted
    assert shallow.max() <= depth
    assert np.array_equal(shallow, np.minimum(deep, depth))


@settings(deadline=None, max_examples=40)
@given(
    value=st.sampled_from(MODELS),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    longer=st.integers(0, 30),
    others=st.lists(st.integers(1, 90), max_size=3),
)
def test_other_lengths_requests_and_slices_move_no_draw(value, lengths, longer, others):
    """The same request keeps its runs when the ones before it get longer, others follow and slices change."""
    before = requests_of(lengths)
    after = requests_of([length + longer for length in lengths] + others, [0] * len(lengths) + [1] * len(others))
    left, right = runs_of(before, value), runs_of(after, value, iid(0.5))
    for request, length in enumerate(lengths):
        start, moved = left.offsets[request], right.offsets[request]
        assert np.array_equal(left.accepted[start : start + length], right.accepted[moved : moved + length])


@settings(deadline=None, max_examples=40)
@given(low=st.floats(0, 1), high=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_larger_alpha_accepts_no_less_anywhere(low, high, seed):
    requests = requests_of([60, 5, 33])
    low, high = sorted((low, high))
    assert np.all(
        runs_of(requests, iid(low), depth=9, seed=seed).accepted
        <= runs_of(requests, iid(high), depth=9, seed=seed).accepted
    )


@pytest.mark.parametrize("value", MODELS)
def test_seeds_and_replications_differ(value):
    requests = requests_of([200] * 5)
    first = runs_of(requests, value).accepted
    assert np.array_equal(first, runs_of(requests, value).accepted)
    assert not np.array_equal(first, runs_of(requests, value, seed=2).accepted)
    assert not np.array_equal(first, runs_of(requests, value, replication=1).accepted)
    assert not np.array_equal(first[:200], first[200:400])


def test_a_request_longer_than_a_block_and_many_short_ones():
    long = 1_200_000
    requests = requests_of([1] * 3_000 + [long] + [2] * 3_000)
    accepted = runs_of(requests, iid(0.5), depth=1).accepted
    assert accepted[3_000 : 3_000 + long].mean() == pytest.approx(0.5, abs=0.003)
    assert accepted[:3_000].mean() == pytest.approx(0.5, abs=0.04)
    assert accepted[3_000 + long :].mean() == pytest.approx(0.5, abs=0.03)
