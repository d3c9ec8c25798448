"""The AR(1) states: stationary from the first position, against the plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.acceptance.logit_memory import normals_from_uniforms, stationary_states


@settings(deadline=None, max_examples=60)
@given(phi=st.floats(0, 0.9999), sd=st.floats(0, 5), positions=st.integers(1, 70), seed=st.integers(0, 99))
def test_doubling_equals_the_recursion(phi, sd, positions, seed):
    normals = np.random.default_rng(seed).standard_normal((2, positions))
    states = np.empty_like(normals)
    states[:, 0] = sd * normals[:, 0]
    for p in range(1, positions):
        states[:, p] = phi * states[:, p - 1] + sd * np.sqrt(1 - phi * phi) * normals[:, p]
    assert stationary_states(normals, phi, sd) == pytest.approx(states, abs=1e-12)


def test_every_position_has_the_same_spread():
    states = stationary_states(np.random.default_rng(1).standard_normal((40_000, 30)), 0.95, 0.9)
    assert states.std(axis=0) == pytest.approx(np.full(30, 0.9), rel=0.02)
    assert np.corrcoef(states[:, 3], states[:, 13])[0, 1] == pytest.approx(0.95**10, abs=0.01)


def test_normals_are_standard_and_independent():
    normals = normals_from_uniforms(np.random.default_rng(2).random((2, 200_000)))
    assert normals.mean() == pytest.approx(0, abs=0.007)
    assert normals.var() == pytest.approx(1, abs=0.01)
    assert np.mean(normals**4) == pytest.approx(3, abs=0.06)
    assert np.mean(normals[:, 0::2] * normals[:, 1::2]) == pytest.approx(0, abs=0.01)


def test_a_uniform_of_0_is_a_finite_normal():
    assert np.all(np.isfinite(normals_from_uniforms(np.array([[0.0, 0.0, 1 - 2**-53, 0.5]]))))
