"""Arms differ by what is asked about and by nothing else: the same requests and the same acceptance in all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers.run import run_scenario

BASE = ("workload.requests=30", "workload.arrivals={kind: poisson, rate: 8}", "run.replications=2")


def tables(*sets):
    """The records by (arm, replication)."""
    result = run_scenario(None, (*BASE, *sets), keep_tables=2)
    return {(one.name, one.replication): one for one in result.tables}


def same_requests(one, other):
    return all(
        np.array_equal(getattr(one.requests, name), getattr(other.requests, name))
        for name in ("arrival_ms", "prompt_tokens", "output_tokens", "slice_index", "prefix_hit_tokens")
    )


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 1000),
    seats=st.integers(2, 40),
    k=st.integers(1, 6),
    replicas=st.integers(1, 2),
)
def test_every_arm_serves_the_same_requests_with_the_same_luck(seed, seats, k, replicas):
    other = f"{{engine.max_num_seqs: {seats}, engine.replicas: {replicas}}}"
    arms = f"{{other: {other}, k: {{speculation.num_speculative_tokens: {k}}}}}"
    found = tables(f"run.seed={seed}", f"arms={arms}")
    for replication in (0, 1):
        baseline = found["baseline", replication]
        for name in ("speculative", "other", "k"):
            assert same_requests(baseline, found[name, replication])
        # at the same k a request takes the same rounds wherever and beside whomever it runs
        one, other = found["speculative", replication].records.requests, found["other", replication].records.requests
        for column in ("rounds", "num_drafts", "accepted_tokens", "draft_tokens_cut"):
            np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
    assert not same_requests(found["baseline", 0], found["baseline", 1])


@pytest.mark.parametrize("replications", [1, 4])
def test_a_replication_does_not_know_how_many_there_are(replications):
    many, few = tables(f"run.replications={replications}"), tables()
    for key in few.keys() & many.keys():
        assert same_requests(few[key], many[key])
        np.testing.assert_array_equal(few[key].records.requests.finish_step, many[key].records.requests.finish_step)
        np.testing.assert_array_equal(few[key].records.steps[0].start_ms, many[key].records.steps[0].start_ms)


def test_pairs_are_sharper_than_their_halves():
    """The interval of the difference is narrower than what the two arms' own intervals would give."""
    document = run_scenario(None, (*BASE, "run.replications=8", "workload.requests=60")).document
    row = document["comparison"]["speculative"]["mean_e2el_ms"]
    baseline, arm = document["arms"]["baseline"], document["arms"]["speculative"]
    half = [(one["ci"]["mean_e2el_ms"][1] - one["ci"]["mean_e2el_ms"][0]) / 2 for one in (baseline, arm)]
    unpaired = np.hypot(*half) / baseline["mean_e2el_ms"]
    assert (row["high"] - row["low"]) / 2 < 0.8 * unpaired
