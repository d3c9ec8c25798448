"""Replications are added until intervals are narrow enough, the same ones whatever runs them."""

import numpy as np
import pytest

from sim.analysis.statistics import mean_interval, sample_of
from sim.answers.precision import Shortfall, replications_wanted
from sim.answers.run import run_scenario
from sim.report.json_text import json_text
from sim.report.terminal import caveats

SMALL = ("workload.requests=40", "workload.arrivals={kind: poisson, rate: 3}")
ASKED = "run={replications: 3, precision: {mean_tpot_ms: 0.04, output_throughput: 0.15}, max_replications: 40}"


def run(*sets, jobs=1):
    return run_scenario(None, (*SMALL, *sets), jobs).document


def relative_half_width(arm, metric):
    low, high = arm["ci"][metric]
    return (high - low) / 2 / arm[metric]


@pytest.fixture(scope="module")
def narrow():
    return run(ASKED)


def test_every_interval_that_was_asked_for_is_narrow_enough(narrow):
    assert 3 < narrow["replications"] < 40
    for arm in narrow["arms"].values():
        assert relative_half_width(arm, "mean_tpot_ms") <= 0.04
        assert relative_half_width(arm, "output_throughput") <= 0.15
    assert not [text for text in narrow["warnings"] if "was asked for" in text]
    assert caveats(narrow)[-1].endswith(f"replications {narrow['replications']}")


def test_the_first_batch_was_not_enough():
    few = run("run.replications=3")["arms"].values()
    assert any(
        relative_half_width(arm, metric) > most
        for arm in few
        for metric, most in (("mean_tpot_ms", 0.04), ("output_throughput", 0.15))
    )


def test_processes_change_nothing(narrow):
    assert json_text(run(ASKED, jobs=2)) == json_text(narrow)


def test_added_replications_are_those_of_a_longer_run(narrow):
    plain = run(f"run.replications={narrow['replications']}")
    assert json_text(plain["arms"]) == json_text(narrow["arms"])
    assert json_text(plain["comparison"]) == json_text(narrow["comparison"])


def test_the_limit_is_kept_and_what_is_missing_is_said():
    document = run("run={replications: 2, precision: 0.001, max_replications: 5}")
    assert document["replications"] == 5
    missing = [text for text in document["warnings"] if "was asked for" in text]
    assert any("arm speculative: after 5 replications the interval of mean_ttft_ms is +-" in text for text in missing)
    assert all("0.1% was asked for: raise max_replications" in text for text in missing)


def test_loose_bounds_stop_at_once():
    assert run("run={replications: 3, precision: 0.99, max_replications: 40}")["replications"] == 3


def test_an_overloaded_arm_is_not_waited_for():
    rush = ("workload.requests=400", "workload.arrivals={kind: poisson, rate: 500}", "engine.max_num_seqs=8")
    document = run(*rush, "run={replications: 2, precision: 0.0001, max_replications: 4}")
    assert all(arm["overload"]["detected"] for arm in document["arms"].values())
    assert document["replications"] == 2


def test_how_many_to_have_next():
    def next_total(half_width, done, most=1000):
        return replications_wanted([Shortfall("a", "m", half_width, 0.1)], done, most)

    assert replications_wanted([], 5, 1000) == 5
    assert next_total(0.12, 10) == 15  # 10 * 1.2 ** 2, rounded up
    assert next_total(0.1000001, 10) == 11  # at least one more
    assert next_total(3.0, 10) == 20  # twice as many at most
    assert next_total(3.0, 10, most=12) == 12
    assert next_total(3.0, 12, most=12) == 12


def test_stopping_by_what_is_seen_costs_little():
    """The interval at the stop holds the true mean about as often as it says."""
    held, runs, wanted = 0, 400, 0.05
    for seed in range(runs):
        values = np.random.default_rng(seed).normal(1.0, 0.1, 200)
        done, total = 0, 5
        while done < total:
            done = total
            low, high = mean_interval(sample_of(values[:done]))
            half_width = (high - low) / 2 / values[:done].mean()
            missing = [Shortfall("a", "m", half_width, wanted)] if half_width > wanted else []
            total = replications_wanted(missing, done, 200)
        assert half_width <= wanted
        held += low <= 1.0 <= high
    assert 0.91 <= held / runs <= 0.97
