"""Arrival processes: rate, burstiness, order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.inputs.scenario import AtOnce, Closed, Gamma, Poisson
from sim.workload.arrivals import arrival_times_ms

COUNT = 100_000


def gaps_ms(arrivals, count=COUNT, seed=3):
    return np.diff(arrival_times_ms(arrivals, count, np.random.default_rng(seed)), prepend=0.0)


@pytest.mark.parametrize("arrivals", [AtOnce(kind="at_once"), Closed(kind="closed", concurrency=4, think_time_s=2)])
def test_nothing_waits_for_the_clock(arrivals):
    assert arrival_times_ms(arrivals, 5, np.random.default_rng(1)).tolist() == [0.0] * 5


def test_poisson_gaps_are_exponential():
    gaps = gaps_ms(Poisson(kind="poisson", rate=4))
    assert gaps.mean() == pytest.approx(250, rel=0.015)
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.015)
    assert np.mean(gaps > 500) == pytest.approx(np.exp(-2), abs=0.005)
    assert gaps[0] > 0


@pytest.mark.parametrize("cv", [0.3, 1.0, 3.2])
def test_gamma_rate_and_coefficient_of_variation(cv):
    gaps = gaps_ms(Gamma(kind="gamma", rate=4, cv=cv))
    assert gaps.mean() == pytest.approx(250, abs=4 * 250 * cv / COUNT**0.5)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.04)


def test_gamma_of_cv_1_counts_like_poisson():
    times = np.cumsum(gaps_ms(Gamma(kind="gamma", rate=4, cv=1)))
    counts = np.bincount((times // 1000).astype(int))[:-1]
    assert counts.mean() == pytest.approx(4, rel=0.02)
    assert counts.var() / counts.mean() == pytest.approx(1, rel=0.05)


def test_a_higher_rate_only_compresses_time():
    slow = arrival_times_ms(Poisson(kind="poisson", rate=2), 50, np.random.default_rng(1))
    fast = arrival_times_ms(Poisson(kind="poisson", rate=6), 50, np.random.default_rng(1))
    assert fast == pytest.approx(slow / 3)


@settings(deadline=None, max_examples=60)
@given(rate=st.floats(1e-3, 1e9), cv=st.floats(1e-200, 1e200), seed=st.integers(0, 99))
def test_times_never_decrease(rate, cv, seed):
    gaps = gaps_ms(Gamma(kind="gamma", rate=rate, cv=cv), 20, seed)
    assert np.all(gaps >= 0)
    assert np.all(np.isfinite(gaps))
