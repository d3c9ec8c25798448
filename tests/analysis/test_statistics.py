import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sim.analysis.statistics import (
    Sample,
    lag1_correlation,
    mean_interval,
    mser5_limit,
    mser5_truncation,
    paired_difference_interval,
    percentiles,
    sample_of,
    weighted_percentiles,
)

PERCENTS = (0, 13, 50, 95, 99, 100)


def test_interval_of_a_mean_is_students():
    values = np.array([3.0, 5.0, 4.0, 8.0])
    expected = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert mean_interval(sample_of(values)) == pytest.approx(expected)


def test_one_replication_has_no_interval():
    assert mean_interval(sample_of([3.0])) is None
    assert paired_difference_interval(sample_of([3.0]), sample_of([2.0])) is None


def test_unequal_pairs_are_refused():
    with pytest.raises(ValueError, match="got 2 and 3"):
        paired_difference_interval(sample_of([1, 2]), sample_of([1, 2, 3]))


def test_paired_interval_is_that_of_the_differences():
    a, b = np.array([11.0, 21.0, 30.0]), np.array([10.0, 19.0, 29.0])
    assert paired_difference_interval(sample_of(a), sample_of(b)) == pytest.approx(mean_interval(sample_of(a - b)))


def test_the_same_sample_differs_by_exactly_nothing():
    sample = Sample(np.array([0.1, 0.2, 0.7]), np.array([3.0, 4.0, 5.0]))
    assert paired_difference_interval(sample, sample) == (0.0, 0.0)


def test_ratio_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(1000):
        denominators = rng.uniform(50, 150, 10)
        numerators = 2.0 * denominators + rng.normal(0, 20, 10)
        low, high = mean_interval(Sample(numerators, denominators))
        hits += low <= 2.0 <= high
    assert 0.92 < hits / 1000 < 0.98


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 5)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=100)
def test_weighted_percentiles_are_those_of_the_expanded_sample(pairs):
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    expanded = np.repeat(values, weights)
    got = weighted_percentiles(values, weights, PERCENTS)
    if len(expanded):
        assert got == pytest.approx(np.percentile(expanded, PERCENTS).tolist(), rel=1e-12, abs=1e-9)
    else:
        assert got is None


def test_percentiles_of_nothing():
    assert percentiles(np.array([]), PERCENTS) is None


def test_mser_cuts_the_transient():
    rng = np.random.default_rng(5)
    series = rng.normal(0, 1, 1000)
    series[:200] += np.linspace(30, 0, 200)
    assert 150 <= mser5_truncation(series) <= 260


def test_mser_minimises_over_the_first_half():
    series = np.random.default_rng(6).exponential(1, 203)
    means = series[:200].reshape(40, 5).mean(axis=1)
    scores = [means[d:].var() / (40 - d) for d in range(21)]
    assert mser5_truncation(series) == 5 * int(np.argmin(scores))


def by_definition(series):
    """White's rule in so many words: among cuts of up to half the batches, the least variance of the kept mean."""
    means = [np.mean(series[i : i + 5]) for i in range(0, len(series) - 4, 5)]
    scores = [np.var(means[d:]) / (len(means) - d) for d in range(len(means) // 2 + 1)]
    return scores, mser5_truncation(series) // 5


@given(st.lists(st.floats(-1e3, 1e3), min_size=10, max_size=120))
@settings(deadline=None, max_examples=200)
def test_mser_is_the_rule_in_so_many_words(values):
    series = np.array(values)
    scores, cut = by_definition(series)
    assert mser5_truncation(series) % 5 == 0
    assert mser5_truncation(series) <= mser5_limit(len(series)) <= len(series) / 2
    assert scores[cut] <= min(scores) + 1e-9 * (1 + max(scores))


@given(st.integers(0, 2**32 - 1), st.integers(-3, 3), st.sampled_from([0.25, 4.0, 1024.0]))
@settings(deadline=None, max_examples=50)
def test_mser_knows_no_units(seed, shift, scale):
    rng = np.random.default_rng(seed)
    series = rng.exponential(1, 300) + np.linspace(rng.uniform(0, 5), 0, 300).clip(0)
    assert mser5_truncation(scale * (series + shift)) == mser5_truncation(series)


def test_the_limit_of_mser_tells_a_trend_from_a_steady_state():
    rng = np.random.default_rng(8)
    assert mser5_truncation(np.arange(997.0)) == mser5_limit(997) == 495
    steady = [mser5_truncation(rng.exponential(1, 1000)) for _ in range(100)]
    assert sum(cut == mser5_limit(1000) for cut in steady) <= 5


def test_correlation_of_neighbours():
    assert lag1_correlation(np.full(10, 0.1)) == 0.0
    assert lag1_correlation(np.tile([1.0, -1.0], 500)) == pytest.approx(-1, abs=0.01)
    assert lag1_correlation(np.arange(1000.0)) == pytest.approx(1, abs=0.01)
    assert lag1_correlation(np.random.default_rng(9).normal(size=10_000)) == pytest.approx(0, abs=0.03)


def test_mser_without_transient_or_data():
    assert mser5_truncation(np.full(100, 0.1)) == 0
    assert mser5_truncation(np.arange(9.0)) == 0


def test_mser_of_a_trend_stops_at_half():
    assert mser5_truncation(np.arange(1000.0)) == 500
