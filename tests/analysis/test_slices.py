import json

import numpy as np
import pytest
from hand_made import counts, records, steps, story, workload
from hypothesis import given, settings
from hypothesis import strategies as st
from random_records import made_records

from sim.analysis.fields import SLICE_FIELDS
from sim.analysis.metrics import replication_metrics
from sim.analysis.overload import Overload
from sim.analysis.replications import merge_slice
from sim.analysis.slices import SlicePool, bill_shares, committed_by_rounds, row_ms, slice_metrics
from sim.analysis.timeline import timeline
from sim.inputs.scenario import Price, Slo

STABLE = Overload(False, None)
# Two drafts a round. Request 0 (slice 0) prefills 4 rows and decodes twice; request 1 (slice 1) prefills 8 rows beside
# its first round, is preempted, prefills again (one token) and decodes once; request 2 of slice 1 never fits.
PARTS = [(0, 10, 10, 0, 0, 0), (0, 22, 22, 0, 0, 0), (0, 6, 6, 0, 0, 0), (0, 9, 9, 0, 0, 0), (0, 3, 3, 0, 0, 0)]
STORIES = [story("FDD", tokens=[1, 3, 2]), story("FxFD", first_step=1, tokens=[1, 1, 1]), story("", arrival_ms=1.0)]
ROWS = {
    "decode_rows": [0, 1, 1, 0, 1],
    "draft_tokens": [0, 2, 2, 0, 2],
    "prefill_rows": [1, 1, 0, 1, 0],
    "prefill_tokens": [4, 8, 0, 9, 0],
}
SLICES = [0, 1, 1]


def made(**request_columns):
    one = records([steps(PARTS, **ROWS)], STORIES, sampler=counts(accepted_at=[0, 0]))
    columns = {"num_drafts": [2, 1, 0], "draft_tokens": [4, 2, 0], "accepted_tokens": [3, 1, 0]}
    for name, values in (columns | request_columns).items():
        getattr(one.requests, name)[:] = values
    return one


def measured(slices=SLICES, rates=(0.5, 1.0), price=None, slo=None, **options):
    requests, one = workload(STORIES, slice_index=slices), made()
    whole = replication_metrics(one, requests, num_gpu_blocks=None, success_rates=rates, price=price, slo=slo)
    return slice_metrics(one, requests, whole, success_rates=rates, slo=slo, **options)


def test_fields_are_those_of_the_table_in_its_order():
    for part in measured():
        assert list(part.values) == list(SLICE_FIELDS)
        assert json.loads(json.dumps(part.values, allow_nan=False)) == part.values
    merged = merge_slice([measured()[0]] * 2, STABLE)
    assert list(merged) == [*SLICE_FIELDS, "ci"]


def test_each_slice_on_paper():
    first, second = (part.values for part in measured())
    assert (first["completed"], first["failed"], second["completed"], second["failed"]) == (1, 0, 1, 1)
    assert (first["request_share"], second["request_share"]) == pytest.approx((1 / 3, 2 / 3))
    assert (first["total_output_tokens"], second["total_output_tokens"]) == (6, 3)
    assert (first["output_token_share"], second["output_token_share"]) == pytest.approx((2 / 3, 1 / 3))
    assert (first["mean_ttft_ms"], second["mean_ttft_ms"]) == pytest.approx((10, 32))
    assert (first["mean_tpot_ms"], second["mean_tpot_ms"]) == pytest.approx((28 / 5, 18 / 2))
    assert first["committed_tokens_per_round"] == pytest.approx(5 / 2)
    assert second["committed_tokens_per_round"] == pytest.approx(1.0)  # one of its three tokens came from a round
    assert first["spec_decode_acceptance_length"] == pytest.approx(1 + 3 / 2)
    assert second["spec_decode_acceptance_rate"] == pytest.approx(50)
    assert (first["wasted_draft_tokens"], second["preemptions"]) == (1, 1)
    for part in (first, second):
        assert sum(part["time_share"].values()) == pytest.approx(1)


def test_a_step_is_divided_by_rows_of_the_target():
    one, requests = made(), workload(STORIES, slice_index=SLICES)
    # 10 ms whole; 22 ms for 3 + 8 rows; 6 ms and, after the other's prefill of 9 ms, 3 ms of a round
    expected = np.array([10 + 22 * 3 / 11 + 6, 22 * 8 / 11 + 9 + 3])
    assert row_ms(one, requests, timeline(one), 2) == pytest.approx(expected)
    first, second = measured(price=Price(usd_per_gpu_hour=3600))
    assert first.values["gpu_time_share"] == pytest.approx(22 / 50)
    assert first.values["cost"]["usd_per_request"] == pytest.approx(0.050 * 22 / 50)
    assert first.values["cost"]["usd_per_successful_task"] == pytest.approx(0.050 * 22 / 50 / 0.5)
    assert second.values["cost"]["usd_per_million_output_tokens"] == pytest.approx(0.050 * 28 / 50 / 3 * 1e6)


def test_requests_with_more_drafts_pay_for_more_rows():
    """One step of 12 ms: three rounds of 1, 1 and 4 rows, of which two belong to slice 0."""
    rows = {"decode_rows": [0, 3], "draft_tokens": [0, 3], "prefill_rows": [3, 0], "prefill_tokens": [6, 0]}
    stories = [story("FD"), story("FD"), story("FD")]
    one = records([steps([(0, 6, 6, 0, 0, 0), (0, 12, 12, 0, 0, 0)], **rows)], stories, sampler=counts([0]))
    one.requests.draft_tokens[:] = [0, 0, 3]
    requests = workload(stories, slice_index=[0, 0, 1])
    assert row_ms(one, requests, timeline(one), 2) == pytest.approx([4 + 12 * 2 / 6, 2 + 12 * 4 / 6])


def test_slices_pay_for_the_replicas_of_their_pool():
    work_ms = np.array([10.0, 30.0, 5.0, 0.0])
    one = [SlicePool(2, range(4))]
    assert bill_shares(work_ms, one) == pytest.approx(work_ms / 45)
    pools = [SlicePool(3, {0, 1}), SlicePool(1, {2})]
    assert bill_shares(work_ms, pools) == pytest.approx([3 / 16, 9 / 16, 1 / 4, 0])
    idle = [SlicePool(3, {0, 1}), SlicePool(1, {3}), SlicePool(1, {2})]
    assert bill_shares(work_ms, idle) == pytest.approx([3 / 16, 9 / 16, 1 / 4, 0])
    assert bill_shares(np.zeros(4), one).tolist() == [0.0] * 4


def test_tokens_of_rounds_are_those_that_no_prefill_delivered():
    assert committed_by_rounds(made()).tolist() == [5, 1, 0]


def test_goodput_of_slices_adds_up_and_attainment_does_not():
    slo = Slo(ttft_ms=20)
    first, second = measured(slo=slo)
    assert (first.values["slo_attainment"], second.values["slo_attainment"]) == (1.0, 0.0)
    assert first.values["request_goodput"] == pytest.approx(1 / 0.050)
    assert second.values["request_goodput"] == 0.0
    assert measured()[0].values["slo_attainment"] is None


def test_a_slice_without_requests_has_no_latencies():
    empty = measured(slices=[0, 0, 0])[1].values
    assert (empty["completed"], empty["request_share"], empty["gpu_time_share"]) == (0, 0.0, 0.0)
    assert empty["mean_ttft_ms"] is empty["committed_tokens_per_round"] is empty["slo_attainment"] is None
    merged = merge_slice([measured()[1], measured(slices=[0, 0, 0])[1]], STABLE)
    assert merged["mean_ttft_ms"] == pytest.approx(32)
    assert "mean_ttft_ms" not in merged["ci"]


def test_overload_and_one_replication_have_no_intervals():
    assert merge_slice([measured()[0]], STABLE)["ci"] is None
    assert merge_slice([measured()[0]] * 3, Overload(True, 1.0))["ci"] is None


@settings(max_examples=150, deadline=None)
@given(made_records(), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_slices_together_are_the_whole(pair, seed, first_kept):
    one, stories = pair
    index = np.random.default_rng(seed).integers(0, 3, len(stories))
    requests = workload(stories, slice_index=index)
    slo, price, rates = Slo(e2el_ms=50), Price(usd_per_gpu_hour=2), (0.1, 0.5, 1.0)
    options = {"success_rates": rates, "slo": slo, "first_kept": first_kept}
    whole = replication_metrics(one, requests, num_gpu_blocks=None, price=price, **options)
    parts = slice_metrics(one, requests, whole, **options)
    for name in ("completed", "failed", "total_input_tokens", "total_output_tokens", "preemptions"):
        assert sum(part.values[name] for part in parts) == whole.values[name]
    for name in ("kept_requests", "kept_good_requests"):
        assert sum(part.totals[name] for part in parts) == whole.totals[name]
    for name in ("ttft", "e2el", "decode", "queue"):
        weighted = [(part.values[f"mean_{name}_ms"] or 0.0) * part.totals["kept_requests"] for part in parts]
        assert sum(weighted) == pytest.approx((whole.values[f"mean_{name}_ms"] or 0.0) * whole.totals["kept_requests"])
