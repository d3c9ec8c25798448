import json

import pytest
from hand_made import counts, records, steps, story, workload

from sim.analysis.fields import FIELDS, Merge
from sim.analysis.metrics import replication_metrics
from sim.inputs.scenario import Price, Slo

# five steps of 10 ms, the last 2 ms of each drafting
PARTS = [(1, 6, 6, 0.5, 0.5, 2)] * 5
STORIES = [
    story("FDD", tokens=[1, 3, 2]),
    story("PFDD", arrival_ms=4.0, first_step=1, tokens=[1, 1, 2]),
    story("F", arrival_ms=12.0, first_step=2),
    story("", arrival_ms=13.0),
]
SAMPLER = {
    "rounds": 4,
    "num_drafts": 3,
    "draft_tokens": 6,
    "accepted_tokens": 4,
    "draft_tokens_cut": 1,
    "committed_by_rounds": 8,
    "accepted_at": [3, 1],
    "committed_at": [3, 1, 1],
}


def measured(sampler=SAMPLER, success_rates=(0.5,), **options):
    line = steps(
        PARTS,
        running=[1, 2, 3, 2, 1],
        blocks_used=[1, 2, 4, 2, 1],
        extrapolated_ms=[0.0, 0.0, 10.0, 0.0, 0.0],
    )
    made = records([line], STORIES, sampler=counts(**sampler), usable_blocks=8)
    settings = {"num_gpu_blocks": 9, "success_rates": success_rates} | options
    return replication_metrics(made, workload(STORIES), **settings)


def test_fields_are_those_of_the_table_in_its_order():
    expected = [name for name, rule in FIELDS.items() if rule is not Merge.GIVEN]
    got = measured().values
    assert list(got) == expected
    assert json.loads(json.dumps(got, allow_nan=False)) == got


def test_counts_and_throughputs_on_paper():
    got = measured().values
    assert (got["completed"], got["failed"], got["steps"]) == (3, 1, 5)
    assert got["duration"] == pytest.approx(0.050)
    assert (got["total_input_tokens"], got["total_output_tokens"]) == (30, 11)
    assert got["request_throughput"] == pytest.approx(3 / 0.05)
    assert got["output_throughput"] == pytest.approx(11 / 0.05)
    assert got["total_token_throughput"] == pytest.approx(41 / 0.05)
    assert got["request_goodput"] is None


def test_speculation_on_paper():
    got = measured().values
    assert got["spec_decode_acceptance_length"] == pytest.approx(1 + 4 / 3)
    assert got["spec_decode_acceptance_rate"] == pytest.approx(100 * 4 / 6)
    assert got["spec_decode_per_position_acceptance_rates"] == pytest.approx([1.0, 1 / 3])
    assert [got[f"spec_decode_{name}"] for name in ("num_drafts", "draft_tokens", "accepted_tokens")] == [3, 6, 4]
    assert got["committed_tokens_per_round"] == pytest.approx(2.0)
    assert got["committed_tokens_per_target_pass"] == pytest.approx(11 / 5)
    assert got["target_passes_per_output_token"] == pytest.approx((4 + 4) / 11)
    assert (got["wasted_draft_tokens"], got["draft_tokens_cut"]) == (2, 1)


def test_the_baseline_has_no_speculation_fields():
    got = measured({"rounds": 4, "committed_by_rounds": 4}).values
    assert {value for name, value in got.items() if name.startswith("spec_decode_")} == {None}
    assert got["committed_tokens_per_round"] == 1.0
    assert (got["wasted_draft_tokens"], got["draft_tokens_cut"]) == (0, 0)


def test_speculation_without_a_draft_has_counts_and_no_rates():
    got = measured(SAMPLER | {"num_drafts": 0, "draft_tokens": 0, "accepted_tokens": 0}).values
    assert got["spec_decode_num_drafts"] == 0
    assert got["spec_decode_acceptance_length"] is None
    assert got["spec_decode_per_position_acceptance_rates"] is None


def test_latencies_on_paper():
    got = measured().values
    assert got["mean_ttft_ms"] == pytest.approx((10 + 26 + 18) / 3)
    assert got["median_ttft_ms"] == pytest.approx(18)
    assert got["mean_tpot_ms"] == pytest.approx((20 / 5 + 20 / 3) / 2)
    assert got["mean_itl_ms"] == got["p99_itl_ms"] == pytest.approx(10)
    assert got["mean_queue_ms"] == pytest.approx((0 + 6 + 8) / 3)
    assert sum(
        got[f"mean_ttft_{part}_ms"] for part in ("queue", "prefill", "drafter", "interference")
    ) == pytest.approx(got["mean_ttft_ms"])
    assert sum(got["time_share"].values()) == pytest.approx(1.0, abs=1e-9)


def test_occupancy_on_paper():
    got = measured().values
    assert got["mean_running"] == pytest.approx(9 / 5)
    assert got["kv_utilisation"] == pytest.approx(10 / 5 / 8)
    assert got["extrapolated_share"] == pytest.approx(1 / 5)
    assert (got["max_running"], got["num_gpu_blocks"]) == (3, 9)


def test_idle_time_and_replicas_count_in_occupancy():
    busy = steps([(0, 10, 10, 0, 0, 0)], running=[2], blocks_used=[3])
    later = steps([(0, 10, 10, 0, 0, 0)], start_ms=30.0, running=[4], blocks_used=[1])
    stories = [story("F"), story("F", arrival_ms=30.0, replica=1)]
    made = records([busy, later], stories, usable_blocks=10)  # of both replicas
    got = replication_metrics(made, workload(stories), num_gpu_blocks=6, success_rates=[None]).values
    assert got["mean_running"] == pytest.approx((2 * 10 + 4 * 10) / 40)
    assert got["kv_utilisation"] == pytest.approx((3 * 10 + 1 * 10) / (2 * 5 * 40))


def test_drafting_after_the_last_delivery_is_beyond_the_duration():
    made = records([steps([(0, 10, 10, 0, 0, 90)], running=[1])], [story("F")], async_delivery=True)
    got = replication_metrics(made, workload([story("F")]), num_gpu_blocks=None, success_rates=[None]).values
    assert got["duration"] == pytest.approx(0.010)
    assert got["mean_running"] == pytest.approx(1.0)
    assert got["kv_utilisation"] is None


def test_warm_up_touches_latency_and_throughput_only():
    whole, cut = measured().values, measured(first_kept=1).values
    window_s = 0.050 - 0.004
    assert cut["request_throughput"] == pytest.approx(2 / window_s)
    assert cut["output_throughput"] == pytest.approx(5 / window_s)
    assert cut["mean_ttft_ms"] == pytest.approx((26 + 18) / 2)
    kept = ("completed", "failed", "duration", "total_output_tokens", "spec_decode_num_drafts", "mean_running", "steps")
    assert [cut[name] for name in kept] == [whole[name] for name in kept]


def test_goodput_counts_requests_within_every_limit():
    assert measured(slo=Slo(ttft_ms=20)).values["request_goodput"] == pytest.approx(2 / 0.05)
    assert measured(slo=Slo(tpot_ms=5)).values["request_goodput"] == pytest.approx(2 / 0.05)  # one token: no TPOT
    assert measured(slo=Slo(ttft_ms=20, e2el_ms=20)).values["request_goodput"] == pytest.approx(1 / 0.05)
    assert measured(slo=Slo(deadline_s=0.029)).values["request_goodput"] == pytest.approx(1 / 0.05)


def test_cost_on_paper():
    price = Price(usd_per_gpu_hour=3.6, gpus_per_replica=2)
    usd = 0.050 * 2 * 3.6 / 3600
    got = measured(price=price, slo=Slo(deadline_s=0.031)).values["cost"]
    assert got["usd_per_million_output_tokens"] == pytest.approx(usd / 11 * 1e6)
    assert got["usd_per_request"] == pytest.approx(usd / 3)
    # 30, 46 and 18 ms: one misses the deadline, the others succeed in half of the cases
    assert got["usd_per_successful_task"] == pytest.approx(usd / (2 * 0.5))


def test_cost_needs_a_price_and_tasks_a_success_rate():
    assert measured().values["cost"] is None
    got = measured(price=Price(usd_per_gpu_hour=1), success_rates=(None,)).values["cost"]
    assert got["usd_per_request"] > 0
    assert got["usd_per_successful_task"] is None


def test_few_requests_make_p99_doubtful():
    assert measured().caveats == ["p99 values rest on 3 completed requests, fewer than 1000"]
    stories = [story("F")] * 1000
    made = records([steps([(0, 1, 1, 0, 0, 0)])], stories)
    assert not replication_metrics(made, workload(stories), num_gpu_blocks=None, success_rates=[None]).caveats


def test_nothing_completed_is_none_not_nan():
    made = records([steps([])], [story("")])
    got = replication_metrics(
        made, workload([story("")]), num_gpu_blocks=None, success_rates=[0.5], price=Price(usd_per_gpu_hour=1)
    ).values
    assert (got["completed"], got["failed"], got["duration"]) == (0, 1, 0.0)
    assert got["mean_ttft_ms"] is got["mean_itl_ms"] is got["request_throughput"] is got["mean_running"] is None
    assert got["cost"] is None
    json.dumps(got, allow_nan=False)
