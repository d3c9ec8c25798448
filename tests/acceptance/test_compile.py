"""A compiled model returns, in an independent log at fitted_k, the vector that it was given."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter
from round_logs import requests_of, round_log

from sim.acceptance.build import build_runs
from sim.acceptance.compile import compile_acceptance
from sim.inputs.acceptance_models import Acceptance
from sim.inputs.errors import SpecsimError

ACCEPTANCE = TypeAdapter(Acceptance)
CHAIN = [0.587, 0.509, 0.488, 0.486]
HEURISTIC = [0.573, 0.641, 0.706, 0.754, 0.804, 0.834]


def per_position(conditional, **more):
    return ACCEPTANCE.validate_python({"kind": "per_position", "conditional": conditional} | more)


def conditionals(law):
    return [1 / (1 + odds) for odds in law.odds_against]


def test_without_spread_the_vector_is_the_law():
    law = compile_acceptance(per_position([0.7, 1.0, 0.25, 0.0, 0.4]))
    assert conditionals(law) == pytest.approx([0.7, 1.0, 0.25, 0.0, 0.4], abs=1e-15)
    assert law.measured_depth == 5
    assert 1 / (1 + law.odds_at(63)) == pytest.approx(0.4)


def test_unconditional_rates_become_conditional():
    model = ACCEPTANCE.validate_python({"kind": "per_position", "unconditional": [0.76, 0.54, 0.39, 0, 0]})
    assert conditionals(compile_acceptance(model)) == pytest.approx([0.76, 0.54 / 0.76, 0.39 / 0.54, 0, 0])


def test_unconditional_rates_that_rise_are_refused():
    model = ACCEPTANCE.validate_python({"kind": "per_position", "unconditional": [0.5, 0.6]})
    with pytest.raises(SpecsimError, match="write the values as conditional"):
        compile_acceptance(model)


def test_how_deep_each_kind_was_measured():
    def depth(**model):
        return compile_acceptance(ACCEPTANCE.validate_python(model)).measured_depth

    assert depth(kind="iid", alpha=0.5) is None
    assert depth(kind="rate", acceptance_rate=0.5, num_speculative_tokens=4) == 4
    assert depth(kind="length", acceptance_length=2, num_speculative_tokens=6) == 6
    assert depth(kind="per_position", conditional=[0.5, 0.5], fitted_k=7) == 2


@pytest.mark.parametrize(
    ("conditional", "spread", "output_tokens"),
    [
        (CHAIN, {"sigma": 0.369}, 400),
        ([0.8, 0.7, 0.6], {"sigma": 1.0}, 256),
        (CHAIN, {"sigma": 0.369, "memory": {"phi": 0.95, "sd": 0.5}}, 300),
        (HEURISTIC, {"sigma": 0.419, "memory": {"phi": 0.95, "sd": 0.9}}, 500),
        ([0.843, 0.804], {"fitted_k": 8, "memory": {"phi": 0.8, "sd": 1.2}}, 256),
    ],
    ids=["sigma", "wide sigma", "sigma and memory", "strong memory", "vector shorter than fitted_k"],
)
def test_a_simulated_log_at_fitted_k_returns_the_vector(conditional, spread, output_tokens):
    model = per_position(conditional, **spread)
    k = model.fitted_k or len(conditional)
    requests = requests_of([output_tokens] * 5_000)
    logs = np.array(
        [round_log(build_runs(requests, [model], k + 1, 11, run), requests, k).conditional for run in range(4)]
    )[:, : len(conditional)]
    monte_carlo = logs.std(axis=0, ddof=1) / np.sqrt(len(logs))
    assert np.all(np.abs(logs.mean(axis=0) - conditional) <= 0.005 * np.array(conditional) + 2 * monte_carlo)
    assert np.all(monte_carlo < 0.005)


def test_the_centre_differs_from_the_pooled_vector():
    """Low requests have more rounds, and rounds start at hard positions: at the centre acceptance is higher."""
    for spread in ({"sigma": 1.0}, {"memory": {"phi": 0.95, "sd": 0.9}}):
        assert conditionals(compile_acceptance(per_position(CHAIN, **spread)))[0] > CHAIN[0] + 0.015


def test_certain_positions_stay_certain_under_spread():
    law = compile_acceptance(per_position([1.0, 0.5, 0.0, 0.3], sigma=0.5, memory={"phi": 0.5, "sd": 0.5}))
    assert law.odds_against[0] == 0
    assert law.odds_against[2] == float("inf")


def test_the_widest_spread_that_a_scenario_may_state_has_a_centre():
    law = compile_acceptance(per_position([0.7, 0.5], sigma=10))
    assert law.odds_against[0] < law.odds_against[1]
