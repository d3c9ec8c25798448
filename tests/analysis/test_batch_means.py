"""Intervals from one long run: they cover as often as they say where theory allows them, and are refused elsewhere."""

import numpy as np
import pytest

from sim.analysis.batch_means import BATCHES, MIN_BATCH, BatchSeries, batch_difference, batch_interval, batch_intervals
from sim.analysis.latency import Latencies

SEEDS = range(200)


def mm1(seed, count, rho):
    """Sojourn times of M/M/1 in units of a mean service: Lindley's recursion, from an empty system."""
    rng = np.random.default_rng(seed)
    gaps, service = rng.exponential(1 / rho, count), rng.exponential(1, count)
    walk = np.concatenate([[0.0], np.cumsum(service[:-1] - gaps[1:])])
    return walk - np.minimum.accumulate(walk) + service


def autoregression(seed, count, phi):
    """AR(1) of mean 10 and variance 1, started in its steady state."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    noise = rng.normal(0, (1 - phi**2) ** 0.5, count)
    noise[0] = rng.normal()
    return 10 + lfilter([1], [1, -phi], noise)


def outcomes(make, true, percent=None):
    """How many series were refused, and the share of the others' intervals that hold the true value."""
    found = [batch_interval(make(seed), percent) for seed in SEEDS]
    given = [one for one in found if isinstance(one, tuple)]
    return len(found) - len(given), np.mean([low <= true <= high for low, high in given])


@pytest.mark.parametrize(("phi", "count"), [(0.0, 1000), (0.9, 20_000)])
def test_coverage_of_a_mean(phi, count):
    refused, coverage = outcomes(lambda seed: autoregression(seed, count, phi), 10.0)
    assert refused == 0
    assert 0.91 <= coverage <= 0.98  # 95 % +- 2.6 standard errors of 200 runs


@pytest.mark.parametrize("percent", [50, 95])
def test_coverage_of_a_percentile(percent):
    from scipy.special import ndtri

    true = 10 + ndtri(percent / 100)
    refused, coverage = outcomes(lambda seed: autoregression(seed, 20_000, 0.5), true, percent)
    assert refused == 0
    assert 0.91 <= coverage <= 0.98


@pytest.mark.parametrize(("percent", "true"), [(None, 5.0), (95, 5 * np.log(20))])
def test_coverage_on_a_single_server(percent, true):
    """At rho 0.8 an M/M/1 forgets within some 90 customers."""
    refused, coverage = outcomes(lambda seed: mm1(seed, 80_000, 0.8), true, percent)
    assert refused <= 2
    assert coverage >= 0.91


@pytest.mark.parametrize("percent", [None, 95])
def test_a_run_that_is_too_short_for_its_memory_is_refused(percent):
    """At rho 0.9 an M/M/1 forgets within some 380: batches of 100 or 500 are not independent of each other."""
    count = 2000 if percent is None else 10_000
    found = [batch_interval(mm1(seed, count, 0.9), percent) for seed in SEEDS]
    assert found.count("correlated") >= 0.95 * len(SEEDS)


def test_batches_need_requests():
    rng = np.random.default_rng(1)
    least = BATCHES * MIN_BATCH
    assert batch_interval(rng.normal(size=least // 2)) == "few"
    assert isinstance(batch_interval(rng.normal(size=least + 100)), tuple)
    assert batch_interval(rng.normal(size=9_999), 95) == "few"
    assert isinstance(batch_interval(rng.normal(size=10_000), 95), tuple)
    assert batch_interval(rng.normal(size=49_999), 99) == "few"
    assert batch_interval(np.zeros(0)) == "few"


def test_intervals_lie_around_the_value_of_the_whole_series():
    values = np.random.default_rng(2).exponential(1, 12_345)
    for percent, whole in ((None, values.mean()), (95, np.percentile(values, 95))):
        low, high = batch_interval(values, percent)
        assert (low + high) / 2 == pytest.approx(whole)
    assert batch_interval(np.full(1000, 3.0)) == (3.0, 3.0)


def series(values, tpot=None):
    values = np.asarray(values, float)
    return BatchSeries(
        Latencies(values, values if tpot is None else tpot, values, values, values), np.arange(len(values)) % 2
    )


def test_differences_are_paired_batch_by_batch():
    """What both arms share moves neither batch against the other."""
    shared = mm1(3, 20_000, 0.5)
    noise = np.random.default_rng(4).normal(0, 0.1, len(shared))
    low, high = batch_difference(series(shared - 0.5 + noise), series(shared), "mean_e2el_ms")
    assert low <= -0.5 <= high
    own = batch_interval(shared)
    assert high - low < 0.2 * (own[1] - own[0])
    low, high = batch_difference(series(shared + 1), series(shared), "p95_e2el_ms")
    assert (low, high) == pytest.approx((1.0, 1.0))
    assert batch_difference(series(shared), series(shared[1:]), "mean_e2el_ms") is None
    assert batch_difference(series(shared[:100]), series(shared[:100]), "mean_e2el_ms") is None


def test_requests_without_a_tpot_are_left_out():
    values = np.random.default_rng(5).exponential(1, 4000)
    holes = np.where(np.arange(4000) % 4 == 0, np.nan, values)
    intervals, refused = batch_intervals(series(values, holes))
    assert intervals["mean_tpot_ms"] == list(batch_interval(holes[~np.isnan(holes)]))
    assert {"p95_tpot_ms", "p99_e2el_ms"} <= set(refused["few"])
    assert "mean_tpot_ms" not in refused["few"]


def test_a_slice_is_divided_by_itself():
    values = np.random.default_rng(6).exponential(1, 4000)
    values[1::2] += 10
    for part in (0, 1):
        assert batch_intervals(series(values), part)[0]["mean_ttft_ms"] == list(batch_interval(values[part::2]))
