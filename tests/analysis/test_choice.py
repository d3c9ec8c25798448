"""Choosing between arms by paired samples, and schedules that do not flip inside noise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.analysis.choice import best_of, close_to_best, ratio_row
from sim.analysis.draft_schedule import LEAST_GAIN, fewest_stretches, ranges_of
from sim.analysis.statistics import sample_of


def test_paired_differences_decide_what_levels_cannot():
    level = np.array([100.0, 140.0, 60.0, 120.0, 80.0])
    slower, faster = sample_of(level), sample_of(level + np.array([1.0, 1.1, 0.9, 1.0, 1.0]))
    row = ratio_row(faster, slower)
    assert row["verdict"] == "better"
    assert row["low"] < row["ratio"] < row["high"]
    assert ratio_row(slower, faster)["verdict"] == "worse"
    assert ratio_row(faster, slower, higher_is_better=False)["verdict"] == "worse"
    assert best_of({1: slower, 2: faster}) == (2, ())
    assert best_of({1: slower, 2: faster}, higher_is_better=False) == (1, ())


def test_ties_are_named_and_one_replication_tests_nothing():
    noisy = sample_of([100.0, 103.0, 98.0])
    assert best_of({1: noisy, 2: sample_of([101.0, 101.0, 100.0])}) == (2, (1,))
    assert best_of({1: sample_of([1.0]), 2: sample_of([2.0])}) == (2, (1,))
    assert ratio_row(noisy, noisy) == {"ratio": 1.0, "low": 1.0, "high": 1.0, "verdict": "no_difference_shown"}


def test_a_gain_too_small_to_matter_is_good_enough():
    samples = {k: sample_of(100 + np.array([0.0, 0.001, 0.002]) + gain) for k, gain in ((1, 0.0), (2, 0.5), (3, 3.0))}
    assert best_of({k: samples[k] for k in (1, 2)}) == (2, ())
    assert close_to_best({k: samples[k] for k in (1, 2)}, LEAST_GAIN) == {1, 2}
    assert close_to_best(samples, LEAST_GAIN) == {3}


def test_noise_makes_no_range():
    flat = {k: sample_of([100.0, 110.0, 90.0]) for k in (1, 2)}
    flat[3] = sample_of([101.0, 108.0, 92.0])
    assert fewest_stretches({1: flat, 2: flat, 4: flat})[0].batches == (1, 2, 4)


def test_a_shown_gain_makes_one():
    long = {1: sample_of([90.0, 91.0, 92.0]), 3: sample_of([100.0, 101.0, 102.0])}
    short = {1: sample_of([100.0, 101.0, 102.0]), 3: sample_of([90.0, 91.0, 92.0])}
    stretches = fewest_stretches({1: long, 8: short})
    assert stretches == [((1,), 3), ((8,), 1)]
    assert ranges_of([3, 1], [4], 256) == [[1, 4, 3], [5, 256, 1]]


@given(
    st.lists(st.dictionaries(st.integers(0, 4), st.floats(1, 100), min_size=5, max_size=5), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_every_stretch_is_good_enough_everywhere_and_there_are_no_more_than_flips(tables, noise):
    spread = noise * np.array([-1.0, 0.0, 1.0])
    by_batch = {
        1 << place: {k: sample_of(value + spread) for k, value in table.items()} for place, table in enumerate(tables)
    }
    stretches = fewest_stretches(by_batch)
    assert [batch for one in stretches for batch in one.batches] == list(by_batch)
    for one in stretches:
        for batch in one.batches:
            assert one.drafts in close_to_best(by_batch[batch], LEAST_GAIN)
    for before, after in pairwise(stretches):
        assert before.drafts != after.drafts
    best = [best_of(samples).key for samples in by_batch.values()]
    assert len(stretches) <= 1 + sum(a != b for a, b in pairwise(best))


def test_pairs_need_equal_numbers():
    with pytest.raises(ValueError, match="equal numbers"):
        ratio_row(sample_of([1.0, 2.0]), sample_of([1.0]))
