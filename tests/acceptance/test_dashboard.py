"""Dashboard numbers are solved exactly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.acceptance.dashboard import DASHBOARD_WARNING, dashboard_alpha
from sim.inputs.acceptance_models import AcceptanceLength, Rate
from sim.inputs.errors import SpecsimError


def rate(value, k):
    return dashboard_alpha(Rate(kind="rate", acceptance_rate=value, num_speculative_tokens=k))


def length(value, k):
    return dashboard_alpha(AcceptanceLength(kind="length", acceptance_length=value, num_speculative_tokens=k))


@settings(deadline=None, max_examples=200)
@given(value=st.floats(0, 1), k=st.integers(1, 64))
def test_the_rate_is_the_mean_of_the_powers(value, k):
    alpha = rate(value, k)
    assert sum(alpha**i for i in range(1, k + 1)) / k == pytest.approx(value, abs=1e-12)


@settings(deadline=None, max_examples=200)
@given(fraction=st.floats(0, 1), k=st.integers(1, 64))
def test_the_length_is_one_plus_the_sum_of_the_powers(fraction, k):
    value = 1 + fraction * k
    alpha = length(value, k)
    assert sum(alpha**i for i in range(k + 1)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("k", [1, 4, 64])
def test_extremes_are_exact(k):
    assert (rate(0, k), rate(1, k), length(1, k), length(k + 1, k)) == (0, 1, 0, 1)


def test_known_values():
    assert rate(0.8, 1) == pytest.approx(0.8, rel=1e-15)
    assert length(1 + 0.7 + 0.49 + 0.343, 3) == pytest.approx(0.7, rel=1e-12)


def test_a_length_that_no_engine_prints():
    with pytest.raises(SpecsimError, match="at most 4"):
        length(4.5, 3)


def test_the_warning_names_what_cannot_be_predicted():
    assert "p95" in DASHBOARD_WARNING
    assert "another num_speculative_tokens" in DASHBOARD_WARNING
