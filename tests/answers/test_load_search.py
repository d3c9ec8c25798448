"""The highest load that meets a condition: found, bounded, whole or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.answers.load_search import between, highest_load, known_bracket


@given(limit=st.floats(1e-3, 1e5), start=st.floats(1e-3, 1e5))
def test_a_rate_is_found_from_anywhere(limit, start):
    looks = []

    def meets(load):
        looks.append(load)
        return load <= limit

    found = highest_load(meets, start, least=1e-6, most=1e6, whole=False, precision=0.005)
    assert found.meets <= limit < found.fails
    assert found.fails - found.meets <= 0.005 * found.fails
    assert len(looks) < 60


@given(limit=st.integers(1, 5000), start=st.integers(1, 5000))
def test_a_number_of_users_is_found_exactly(limit, start):
    found = highest_load(lambda users: users <= limit, float(start), least=1, most=10_000, whole=True, precision=0.5)
    assert (found.meets, found.fails) == (limit, limit + 1)


@pytest.mark.parametrize("whole", [True, False])
def test_nothing_and_everything(whole):
    options = {"least": 1.0, "most": 100.0, "whole": whole, "precision": 0.01}
    assert highest_load(lambda load: False, 20.0, **options) == (None, 1.0)
    assert highest_load(lambda load: True, 20.0, **options) == (100.0, None)


def test_equal_ends_and_tiny_precision_end():
    assert between(lambda load: load < 1.5, 1.0, 2.0, whole=False, precision=0.0).meets == pytest.approx(1.5)


def test_a_bracket_of_what_is_known():
    assert known_bracket(lambda load: load < 3, [4, 1, 2, 8]) == (2, 4)
    assert known_bracket(lambda load: load != 2, [1, 2, 4]) == (1, 2)
    assert known_bracket(lambda load: False, [1, 2]) == (None, 1)
