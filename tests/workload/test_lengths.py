"""Drawn lengths have the stated distribution, within their limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.inputs.scenario import Empirical, Geometric, Lognormal, Uniform
from sim.workload.lengths import sample_lengths

COUNT = 100_000
HERE = Path()


def drawn(length, count=COUNT, seed=5, base_dir=HERE):
    tokens = sample_lengths(length, count, np.random.default_rng(seed), base_dir)
    assert tokens.dtype == np.int64
    assert tokens.shape == (count,)
    return tokens


def standard_error(values):
    return values.std() / len(values) ** 0.5


def test_a_plain_number_is_the_length():
    assert set(drawn(37).tolist()) == {37}


def test_lognormal_median_and_90th_percentile():
    tokens = drawn(Lognormal(kind="lognormal", median=1020, p90=2734))
    assert np.median(tokens) == pytest.approx(1020, rel=0.015)
    assert np.percentile(tokens, 90) == pytest.approx(2734, rel=0.02)
    assert np.log(tokens).std() == pytest.approx(np.log(2734 / 1020) / 1.2815515655, rel=0.02)


@pytest.mark.parametrize("mean", [1, 1.3, 2, 20.5, 211])
def test_geometric_mean_variance_and_start(mean):
    tokens = drawn(Geometric(kind="geometric", mean=mean))
    assert tokens.min() == 1
    assert abs(tokens.mean() - mean) <= 4 * standard_error(tokens)
    assert tokens.var() == pytest.approx(mean * (mean - 1), rel=0.05)
    assert np.mean(tokens == 1) == pytest.approx(1 / mean, abs=0.006)


def test_uniform_reaches_both_ends_equally():
    tokens = drawn(Uniform(kind="uniform", low=3, high=7))
    assert np.bincount(tokens, minlength=9)[3:8] / COUNT == pytest.approx([0.2] * 5, abs=0.006)
    assert (tokens.min(), tokens.max()) == (3, 7)


def test_empirical_draws_the_lines_of_the_file(tmp_path):
    (tmp_path / "lengths.txt").write_text("5\n5\n9\n100\n")
    tokens = drawn(Empirical(kind="empirical", path="lengths.txt"), base_dir=tmp_path)
    assert np.mean(tokens == 5) == pytest.approx(0.5, abs=0.008)
    assert set(tokens.tolist()) == {5, 9, 100}


@pytest.mark.parametrize(
    "length",
    [Lognormal(kind="lognormal", median=50, p90=400, max=90), Geometric(kind="geometric", mean=60, max=90)],
)
def test_a_maximum_cuts(length):
    tokens = drawn(length)
    assert tokens.max() == 90
    assert 0.05 < np.mean(tokens == 90) < 0.5
    assert np.array_equal(tokens, np.minimum(drawn(length.model_copy(update={"max": None})), 90))


distributions = st.one_of(
    st.builds(
        lambda low, more: Uniform(kind="uniform", low=low, high=low + more), st.integers(1, 99), st.integers(0, 99)
    ),
    st.builds(lambda mean: Geometric(kind="geometric", mean=mean), st.floats(1, 1e7)),
    st.builds(lambda m, r: Lognormal(kind="lognormal", median=m, p90=m * r), st.floats(1e-9, 1e5), st.floats(1, 100)),
)


@settings(deadline=None, max_examples=60)
@given(length=distributions, count=st.integers(1, 50), seed=st.integers(0, 99))
def test_lengths_are_in_range_and_do_not_depend_on_later_requests(length, count, seed):
    tokens = drawn(length, count + 7, seed)
    assert tokens.min() >= 1
    assert tokens.max() <= 10_000_000
    assert np.array_equal(tokens[:count], drawn(length, count, seed))


@settings(deadline=None, max_examples=30)
@given(mean=st.floats(1, 1000), more=st.floats(1, 3))
def test_a_longer_mean_shortens_no_request(mean, more):
    short = drawn(Geometric(kind="geometric", mean=mean), 200)
    assert np.all(drawn(Geometric(kind="geometric", mean=mean * more), 200) >= short)
