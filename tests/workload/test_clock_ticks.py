"""Coarse clocks: found where they are, not where they are not, and bursts spread like the arrivals they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.formats.traces import read_trace
from sim.workload.clock_ticks import clock_tick_ms, spread_over_ticks

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"


def poisson_ms(rate_per_s, count, seed=1):
    return np.cumsum(np.random.default_rng(seed).exponential(1000 / rate_per_s, count))


def floored(times_ms, tick_ms):
    ticks = np.floor(times_ms / tick_ms)
    return ticks * tick_ms - ticks[0] * tick_ms


@pytest.mark.parametrize("tick_ms", [50.0, 1000.0, 3000.0, 60_000.0])
def test_a_clock_that_rounds_is_found(tmp_path, tick_ms):
    rate = 3.4 if tick_ms > 200 else 20.0
    assert clock_tick_ms(floored(poisson_ms(rate, 12_000), tick_ms)) == pytest.approx(tick_ms, rel=1e-3)


def test_a_clock_of_3_s_that_is_a_millisecond_off_now_and_then():
    # The Mooncake conversation trace: 3510000, 3512999, 3515999, 3518999, 3522000, ... ms, 90 % of gaps 0, IAT CV 3.03.
    times = floored(poisson_ms(3.4, 12_031), 3000)
    off = np.where((times / 3000) % 7 < 3, -1.0, 0.0) * (times > 0)
    recorded = times + off
    gaps = np.diff(recorded)
    assert np.mean(gaps == 0) == pytest.approx(0.90, abs=0.01)
    assert gaps.std() / gaps.mean() == pytest.approx(3.03, abs=0.1)
    assert clock_tick_ms(recorded) == pytest.approx(3000, rel=1e-3)


def test_clocks_that_are_fine_enough_are_left_alone():
    fine = poisson_ms(3.4, 12_000)
    assert clock_tick_ms(fine) is None
    assert clock_tick_ms(floored(fine, 1)) is None  # a gap in three hundred is 0
    assert clock_tick_ms(np.zeros(100)) is None
    assert (
        clock_tick_ms(np.repeat(np.cumsum(np.random.default_rng(2).exponential(5000, 300)), 8)) is None
    )  # true bursts
    assert clock_tick_ms(np.repeat([0.0, 3000.0, 6000.0], 9)) is None  # too few to tell
    assert clock_tick_ms(fine[:1]) is None


@pytest.mark.parametrize(
    "name", ["AzureLLMInferenceTrace_conv.csv", "AzureLLMInferenceTrace_code.csv", "mooncake_synthetic_trace.jsonl"]
)
def test_the_published_traces_beside_the_repository_have_fine_clocks(name):
    if not (TRACES / name).exists():
        pytest.skip("the traces are not next to the repository")
    assert clock_tick_ms(read_trace(TRACES / name).arrival_ms) is None


def test_spread_bursts_are_poisson_again():
    times = poisson_ms(3.4, 30_000)
    spread = spread_over_ticks(floored(times, 3000), 3000.0, np.random.default_rng(5))
    gaps = np.diff(spread)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.03)
    counts = np.bincount((spread // 1000).astype(int))[:-3]
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.05)
    assert np.abs(spread - (times - times[0] // 3000 * 3000)).max() < 3000


@settings(deadline=None, max_examples=80)
@given(
    bursts=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 6)), min_size=1, max_size=30), seed=st.integers(0, 99)
)
def test_no_arrival_leaves_its_tick(bursts, seed):
    ticks = np.cumsum([gap for gap, _ in bursts])
    recorded = np.repeat(ticks * 1000.0, [size for _, size in bursts])
    spread = spread_over_ticks(recorded, 1000.0, np.random.default_rng(seed))
    assert np.all(np.diff(spread) >= 0)
    assert np.all((spread >= recorded) & (spread < recorded + 1000))
