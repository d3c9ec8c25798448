"""Analytic calibrations: the physics keeps its bounds, and the tables keep to the physics."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.cost.analytic import (
    CAPTURE_LIMIT,
    MOST_CONTEXT,
    MOST_REQUESTS,
    MOST_ROWS,
    AnalyticSetup,
    analytic_calibration,
    analytic_memory,
    unfit,
)
from sim.cost.context_lines import DecodeAttentionTable, NarrowPassTable
from sim.cost.curve import CompiledCurve
from sim.cost.devices import DEVICES, device_key
from sim.cost.grid_points import grid_points
from sim.cost.prefill_attention import PrefillAttentionTable
from sim.cost.roofline import ModelRoofline, combined_ms, expected_experts
from sim.cost.table_costs import SamplingTable
from sim.inputs.model_dims import load_model_dims

CONFIGS = Path(__file__).resolve().parents[1] / "data" / "model_configs"


def dims_of(model):
    return load_model_dims(CONFIGS / f"{model}.json").dims


def setup_of(gpu, target, draft=None, tp=1, dtype="bf16"):
    return AnalyticSetup("x", DEVICES[gpu], target, dims_of(target), "2026-11-30", draft, draft and "d", tp, dtype)


SETUPS = {
    "dense": setup_of("h100", "llama-3.1-8b", dims_of("llama-3.2-1b")),
    "split": setup_of("h100", "llama-3.3-70b", dims_of("llama-3.1-8b"), 4),
    "sparse": setup_of("h100", "qwen3-30b-a3b", "eagle"),
    "fp8": setup_of("l4", "llama-3.1-8b", "eagle", 2, "fp8"),
}
FILES = {name: analytic_calibration(setup) for name, setup in SETUPS.items()}
some_setup = st.sampled_from(sorted(SETUPS))
rows_up_to = {limit: st.floats(0, math.log(limit)).map(lambda x: round(math.exp(x))) for limit in (512, MOST_ROWS)}
contexts = st.floats(0, math.log(MOST_CONTEXT)).map(lambda x: round(math.exp(x)))


def close(table, exact):
    return table == pytest.approx(exact, rel=0.01)


@given(name=some_setup, rows=rows_up_to[MOST_ROWS])
@settings(deadline=None, max_examples=300)
def test_tables_over_rows_keep_to_their_functions(name, rows):
    target, draft, costs = SETUPS[name].target_roofline(), SETUPS[name].draft_roofline(), FILES[name].costs
    assert close(CompiledCurve(costs.dense.eager).at(rows), target.eager_ms(rows))
    assert close(CompiledCurve(costs.head).at(rows), target.head_ms(rows))
    assert close(CompiledCurve(costs.kv_update).at(rows), target.kv_update_ms(rows))
    assert close(CompiledCurve(costs.draft.first).at(rows), draft.first_pass_ms(rows))


@given(name=some_setup, rows=rows_up_to[512])
@settings(deadline=None, max_examples=200)
def test_captured_columns_keep_to_their_functions(name, rows):
    target, dense = SETUPS[name].target_roofline(), FILES[name].costs.dense
    assert dense.full.rows[-1] == dense.piecewise.rows[-1] == CAPTURE_LIMIT
    assert close(CompiledCurve(dense.full).at(rows), target.dense_ms(rows))
    assert close(CompiledCurve(dense.piecewise).at(rows), target.piecewise_ms(rows))


@given(name=some_setup, batch=st.integers(1, MOST_REQUESTS), query=st.integers(1, 65), context=contexts)
@settings(deadline=None, max_examples=300)
def test_tables_over_contexts_keep_to_their_functions(name, batch, query, context):
    setup, costs = SETUPS[name], FILES[name].costs
    target, draft = setup.target_roofline(), setup.draft_roofline()
    line = DecodeAttentionTable(costs.decode_attention).line(batch, batch * query)
    assert close(line.at(context), target.decode_attention_ms(batch, query, context))
    assert not line.extrapolated(context)
    assert close(NarrowPassTable(costs.draft.narrow).line(batch).at(context), draft.narrow_pass_ms(batch, context))
    sampled = SamplingTable(costs.sampling).of(batch, batch * query)
    assert close(sampled, target.sampling_ms(batch * query, setup.assumed.sampling_bytes_per_logit))


@given(name=some_setup, chunk=rows_up_to[MOST_ROWS], start=st.one_of(st.just(0), contexts))
@settings(deadline=None, max_examples=300)
def test_prefill_tables_keep_to_their_function(name, chunk, start):
    table = PrefillAttentionTable(FILES[name].costs.prefill_attention)
    assert close(table.of(chunk, start), SETUPS[name].target_roofline().prefill_attention_ms(chunk, start))


@given(knee=st.integers(2, 9999), low=st.integers(1, 50), point=st.integers(1, 10_000))
@settings(deadline=None, max_examples=100)
def test_grid_points_find_a_kink(knee, low, point):
    def kinked(rows):
        return max(low, rows * low / knee)

    points = grid_points([kinked], [1, 10_000])
    values = [kinked(rows) for rows in points]
    right = next(i for i, rows in enumerate(points) if rows >= point)
    left = max(0, right - 1)
    share = (point - points[left]) / (points[right] - points[left]) if right > left else 0.0
    assert close(values[left] + share * (values[right] - values[left]), kinked(point))


@given(read=st.floats(0, 1e3), compute=st.floats(0, 1e3), exponent=st.floats(1, 50))
def test_combined_time_lies_between_maximum_and_sum(read, compute, exponent):
    ms = combined_ms(read, compute, exponent)
    assert max(read, compute) * (1 - 1e-12) <= ms <= (read + compute) * (1 + 1e-12)


def test_expected_experts():
    assert expected_experts(128, 8, 1) == pytest.approx(8)
    assert expected_experts(128, 8, 2) == pytest.approx(8 + 8 * (1 - 8 / 128))
    assert expected_experts(128, 8, 4096) == pytest.approx(128)
    assert expected_experts(4, 4, 1) == 4
    assert expected_experts(0, 0, 10) == 0


def test_a_sparse_pass_reads_more_with_more_rows():
    ms = SETUPS["sparse"].target_roofline().dense_ms
    dense = SETUPS["dense"].target_roofline().dense_ms
    assert ms(64) > 5 * ms(1)
    assert dense(64) < 1.1 * dense(1)


@pytest.mark.parametrize("gpu", sorted(DEVICES))
def test_a_pass_is_never_faster_than_the_datasheet(gpu):
    model = ModelRoofline(dims_of("llama-3.1-8b"), DEVICES[gpu])
    for rows in (1, 64, 512, 8192):
        read_ms = model.layers_bytes / (DEVICES[gpu].bandwidth_gb_per_s * 1e6)
        compute_ms = rows * model.flops_per_row / (DEVICES[gpu].bf16_tflop_per_s * 1e9)
        assert max(read_ms, compute_ms) < model.dense_ms(rows) <= model.piecewise_ms(rows) <= model.eager_ms(rows)


def test_an_eager_pass_waits_for_its_launches():
    model = SETUPS["dense"].target_roofline()
    assert model.eager_ms(1) > 1.2 * model.dense_ms(1)
    assert model.eager_ms(4096) == model.dense_ms(4096)


def test_four_gpus_are_faster_but_not_four_times():
    dims = dims_of("llama-3.3-70b")
    one, four = (ModelRoofline(dims, DEVICES["h100"], tp) for tp in (1, 4))
    for rows in (1, 256, 4096):
        assert one.dense_ms(rows) / 4 < four.dense_ms(rows) < one.dense_ms(rows)
    slow_link = ModelRoofline(dims, DEVICES["h100"]._replace(link_gb_per_s=32), 4)
    assert slow_link.dense_ms(4096) > 1.5 * four.dense_ms(4096)


def test_fp8_halves_the_weights_of_layers():
    wide, narrow = (setup_of("h100", "llama-3.1-8b", None, 1, dtype).target_roofline() for dtype in ("bf16", "fp8"))
    assert narrow.layers_bytes == wide.layers_bytes / 2
    assert narrow.head_ms(1) == wide.head_ms(1)
    assert 0.5 < narrow.dense_ms(1) / wide.dense_ms(1) < 0.55


def test_ridge_points_are_the_known_ones():
    ridges = {name: device.bf16_tflop_per_s * 1e3 / device.bandwidth_gb_per_s for name, device in DEVICES.items()}
    assert (round(ridges["h100"]), round(ridges["h200"]), round(ridges["a100"])) == (295, 206, 153)


def test_devices_are_found_as_users_write_them():
    assert [device_key(name) for name in ("H100", "RTX 4090", "rtx-4090")] == ["h100", "rtx4090", "rtx4090"]


def test_memory_is_of_one_gpu():
    memory = analytic_memory(SETUPS["split"])
    assert memory.target_weight_bytes == pytest.approx(2 * 70.55e9 / 4, rel=0.001)
    assert memory.draft_weight_bytes == pytest.approx(2 * 8.03e9 / 4, rel=0.001)
    assert memory.draft_kv_bytes_per_token == 131_072 / 4
    eagle = analytic_memory(SETUPS["sparse"])
    assert eagle.draft_kv_bytes_per_token * 48 == eagle.kv_bytes_per_token
    assert unfit(memory) is None


def test_weights_that_do_not_fit_are_told():
    what, rule, remedy = unfit(analytic_memory(setup_of("h100", "llama-3.3-70b")))
    assert "GB" in what
    assert "gpu_memory_utilization" in rule
    assert "tensor-parallel" in remedy


def test_what_is_assumed_is_said():
    for name, file in FILES.items():
        said = " ".join(file.provenance.not_measured + file.provenance.notes)
        assert file.provenance.measured == []
        assert file.async_scheduling is None
        assert all(word in said for word in ("flops_efficiency 0.78", "host_ms 1.207", "async_scheduling"))
        assert ("Skewed routing" in said) == (name == "sparse")
