"""When a measurement stops and what it keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.timing import Settings, measure, median_interval, summary


class Blocks:
    """Calls whose times are drawn, or listed."""

    def __init__(self, times):
        self.times, self.made = iter(times), 0

    def __call__(self, n):
        self.made += n
        return [next(self.times) for _ in range(n)]


def drawn(mean, sd, seed=1):
    generator = np.random.default_rng(seed)
    while True:
        yield mean * float(np.exp(sd * generator.standard_normal()))


def test_a_calm_device_converges_soon():
    blocks = Blocks(drawn(1.0, 0.001))
    sample = measure(blocks, Settings())
    assert sample.state == "converged"
    assert sample.median_ms == pytest.approx(1.0, rel=0.002)
    assert blocks.made < 150


def test_noise_that_is_known_ends_a_point():
    sample = measure(Blocks(drawn(1.0, 0.4)), Settings(rel_ci=0.0001, max_s=100))
    assert sample.state == "noisy"
    assert sample.is_noisy


def test_time_ends_a_point_with_three_calls_at_least():
    sample = measure(Blocks(drawn(5000.0, 0.01)), Settings(max_s=1.0))
    assert sample.state == "timeout"
    assert sample.n >= 3


def test_first_calls_that_are_slow_are_not_counted():
    slow_start = [100.0, 50.0, 20.0, 5.0, 2.0, 1.0]

    def times():
        yield from slow_start
        yield from drawn(1.0, 0.001)

    assert measure(Blocks(times()), Settings()).q95_ms < 1.1


def test_the_mean_keeps_what_sums_need():
    sample = summary([1.0] * 9 + [11.0], "converged")
    assert (sample.median_ms, sample.mean_ms) == (1.0, 2.0)
    assert not sample.is_noisy


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=60))
def test_the_interval_holds_the_median(times):
    low, high = median_interval(times)
    assert min(times) <= low <= np.median(times) <= high <= max(times)


@pytest.mark.parametrize("n", [12, 60, 200])
def test_the_interval_covers_the_median_of_a_skewed_distribution(n):
    generator = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        low, high = median_interval(generator.exponential(size=n))
        covered.append(low <= np.log(2) <= high)
    assert 0.93 < np.mean(covered) < 0.995


def test_few_calls_say_nothing_of_the_median():
    assert median_interval([1.0] * 5) == (float("-inf"), float("inf"))
