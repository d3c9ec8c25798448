import numpy as np
import pytest
from hand_made import counts, records, steps, story, workload

from sim.analysis.comparison import BETTER, compare_arms
from sim.analysis.metrics import replication_metrics
from sim.analysis.overload import Overload
from sim.analysis.replications import merge_replications
from sim.analysis.statistics import mean_interval, sample_of
from sim.inputs.scenario import Price


def arm(step_times_ms, price=None):
    """One replication a step time: a request of three tokens that arrives 1 ms before its first step."""
    stories = [story("FDD", arrival_ms=-1.0)]
    made = [
        records([steps([(0, ms, ms, 0, 0, 0)] * 3)], stories, sampler=counts(rounds=2, committed_by_rounds=2))
        for ms in step_times_ms
    ]
    return [
        replication_metrics(one, workload(stories), num_gpu_blocks=None, success_rates=[1.0], price=price)
        for one in made
    ]


def test_ratio_and_interval_of_the_paired_difference():
    fast, slow = np.array([5.0, 6.0, 8.0]), np.array([10.0, 12.0, 15.0])
    row = compare_arms(arm(fast), arm(slow), overloaded=False)["mean_tpot_ms"]
    low, high = mean_interval(sample_of(fast - slow))
    assert row["ratio"] == pytest.approx(fast.mean() / slow.mean())
    assert (row["low"], row["high"]) == pytest.approx((1 + low / slow.mean(), 1 + high / slow.mean()))
    assert row["verdict"] == "better"


def test_direction_decides_the_verdict():
    got = compare_arms(arm([10, 12, 15]), arm([5, 6, 8]), overloaded=False)
    assert got["mean_tpot_ms"]["verdict"] == "worse"
    assert got["output_throughput"]["verdict"] == "worse"
    assert got["output_throughput"]["ratio"] < 1 < got["mean_tpot_ms"]["ratio"]


def test_ratios_agree_with_the_arms_as_printed():
    fast, slow = arm([5, 6, 8]), arm([10, 12, 19])
    printed = [
        merge_replications(one, marginal=[], draft_length=[], overload=Overload(False, None)) for one in (fast, slow)
    ]
    for metric, row in compare_arms(fast, slow, overloaded=False).items():
        if row["ratio"] is not None:
            assert row["ratio"] == pytest.approx(printed[0][metric] / printed[1][metric])


def test_a_difference_within_the_noise_is_not_shown():
    row = compare_arms(arm([5, 12, 8]), arm([10, 6, 8.5]), overloaded=False)["mean_ttft_ms"]
    assert row["low"] < 1 < row["high"]
    assert row["verdict"] == "no_difference_shown"


def test_an_arm_against_itself_shows_no_difference():
    same = arm([5.1, 6.2, 8.3], Price(usd_per_gpu_hour=2))
    got = compare_arms(same, arm([5.1, 6.2, 8.3], Price(usd_per_gpu_hour=2)), overloaded=False)
    assert {row["verdict"] for row in got.values()} == {"no_difference_shown"}
    assert got["output_throughput"] == {"ratio": 1.0, "low": 1.0, "high": 1.0, "verdict": "no_difference_shown"}
    assert got["mean_ttft_drafter_ms"]["ratio"] is None  # 0 in both: no ratio, and no difference either


def test_rounding_is_no_difference():
    times = np.array([5.0, 6.0, 8.0])
    row = compare_arms(arm(times * (1 + 1e-13)), arm(times), overloaded=False)["mean_tpot_ms"]
    assert row["verdict"] == "no_difference_shown"
    row = compare_arms(arm(times * (1 + 1e-6)), arm(times), overloaded=False)["mean_tpot_ms"]
    assert row["verdict"] == "worse"


@pytest.mark.parametrize(("times", "overloaded"), [([5], False), ([5, 6, 7], True)])
def test_one_replication_or_overload_is_not_tested(times, overloaded):
    got = compare_arms(arm(times), arm([10] * len(times)), overloaded=overloaded)
    for row in got.values():
        assert (row["low"], row["high"], row["verdict"]) == (None, None, "not_tested")
    assert got["mean_tpot_ms"]["ratio"] == pytest.approx(np.mean(times) / 10)


def test_metrics_that_nobody_has_are_left_out():
    got = compare_arms(arm([5, 6]), arm([7, 8]), overloaded=False)
    assert "request_goodput" not in got
    assert "usd_per_request" not in got
    assert list(got) == [name for name in BETTER if name in got]


def test_cost_is_compared():
    price = Price(usd_per_gpu_hour=2)
    row = compare_arms(arm([5, 6, 7], price), arm([10, 12, 14], price), overloaded=False)["usd_per_successful_task"]
    assert row["ratio"] == pytest.approx(0.5)
    assert row["verdict"] == "better"
