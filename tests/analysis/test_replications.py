import json

import numpy as np
import pytest
from hand_made import counts, records, steps, story, workload

from sim.analysis.fields import FIELDS
from sim.analysis.metrics import replication_metrics
from sim.analysis.overload import Overload
from sim.analysis.replications import merge_replications
from sim.analysis.statistics import mean_interval, sample_of
from sim.inputs.scenario import Price

STABLE = Overload(False, None)


def replication(step_ms, tokens, accepted=1, success_rate=0.5, **columns):
    """One request in two steps; its round commits all tokens but the first."""
    stories = [story("FD", tokens=[1, tokens - 1])]
    sampler = counts(
        rounds=1,
        num_drafts=1,
        draft_tokens=2,
        accepted_tokens=accepted,
        committed_by_rounds=tokens - 1,
        accepted_at=[int(accepted > 0), int(accepted > 1)],
    )
    columns = {"running": [tokens, tokens]} | columns
    made = records([steps([(0, step_ms, step_ms, 0, 0, 0)] * 2, **columns)], stories, sampler=sampler)
    return replication_metrics(
        made,
        workload(stories),
        num_gpu_blocks=7,
        success_rates=[success_rate],
        price=Price(usd_per_gpu_hour=3600),
    )


def merged(*replications, overload=STABLE):
    return merge_replications(replications, marginal=[], draft_length=[], overload=overload)


def test_fields_are_those_of_the_table_then_ci():
    got = merged(replication(10, 2), replication(20, 4))
    assert list(got) == [*FIELDS, "ci"]
    assert json.loads(json.dumps(got, allow_nan=False)) == got


def test_one_replication_stays_as_it_is():
    one = replication(10, 2)
    got = merged(one)
    assert {name: got[name] for name in one.values} == one.values
    assert got["ci"] is None


def test_counts_are_sums_throughputs_ratios_latencies_means_and_maxima_maxima():
    got = merged(replication(10, 2, accepted=2), replication(30, 5, accepted=0))
    assert (got["completed"], got["total_output_tokens"], got["steps"], got["wasted_draft_tokens"]) == (2, 7, 4, 2)
    assert got["duration"] == pytest.approx(0.08)
    assert got["output_throughput"] == pytest.approx(7 / 0.08)
    assert got["mean_ttft_ms"] == pytest.approx(20)
    assert got["max_running"] == 5
    assert got["num_gpu_blocks"] == 7
    assert got["spec_decode_acceptance_length"] == pytest.approx(2.0)
    assert got["spec_decode_per_position_acceptance_rates"] == pytest.approx([0.5, 0.5])
    assert got["committed_tokens_per_round"] == pytest.approx(5 / 2)
    assert sum(got["time_share"].values()) == pytest.approx(1.0)
    assert got["cost"]["usd_per_request"] == pytest.approx(0.08 / 2)
    assert got["cost"]["usd_per_million_output_tokens"] == pytest.approx(0.08 / 7 * 1e6)


def test_money_spent_without_success_counts():
    got = merged(replication(10, 2, success_rate=0.0), replication(10, 2, success_rate=0.5))
    assert got["cost"]["usd_per_successful_task"] == pytest.approx(0.04 / 0.5)


def test_intervals_of_means_are_students_and_lie_around_the_value():
    values = [10, 14, 11]
    got = merged(*(replication(value, 3) for value in values))
    assert got["ci"]["mean_ttft_ms"] == pytest.approx(mean_interval(sample_of(values)))
    low, high = got["ci"]["output_throughput"]
    assert low < got["output_throughput"] < high
    assert (low + high) / 2 == pytest.approx(got["output_throughput"])
    assert not {"completed", "duration", "time_share", "cost", "max_running"} & set(got["ci"])


def test_percentiles_belong_to_a_replication():
    """The mean of each one's p95: a pooled p95 would be that of the slowest replication alone."""
    values = [10, 10, 10, 90]
    got = merged(*(replication(value, 3) for value in values))
    assert got["p95_ttft_ms"] == pytest.approx(np.mean(values))
    assert got["ci"]["p95_ttft_ms"] == pytest.approx(mean_interval(sample_of(values)))


def test_overload_has_no_intervals_and_is_named():
    got = merged(replication(10, 2), replication(20, 4), overload=Overload(True, 3.5))
    assert got["ci"] is None
    assert got["overload"] == {"detected": True, "carried_request_rate": 3.5}


def test_a_field_undefined_in_one_replication_has_no_interval():
    alone = [story("F")]
    made = records([steps([(0, 5, 5, 0, 0, 0)])], alone, sampler=counts(accepted_at=[0, 0]))
    one_token = replication_metrics(made, workload(alone), num_gpu_blocks=7, success_rates=[None])
    got = merged(replication(10, 2), replication(20, 3), one_token)
    assert got["mean_tpot_ms"] == pytest.approx((10 + 20 / 2) / 2)
    assert "mean_tpot_ms" not in got["ci"]
    assert got["cost"]["usd_per_request"] is None
    assert np.isfinite(got["ci"]["mean_ttft_ms"]).all()
