"""Dims from config.json: published counts come out, and what cannot be is told with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.inputs.errors import InputError
from sim.inputs.model_dims import (
    ModelDims,
    dtype_problems,
    eagle_head,
    load_model_dims,
    tensor_parallel_findings,
)

CONFIGS = Path(__file__).resolve().parents[1] / "data" / "model_configs"
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}


def dims_of(model):
    return load_model_dims(CONFIGS / f"{model}.json").dims


def written(path, **changes):
    data = {key: value for key, value in {**SMALL, **changes}.items() if value != "absent"}
    path.write_text(json.dumps(data, indent=1), "utf-8")
    return path


def problems(path):
    with pytest.raises(InputError) as caught:
        load_model_dims(path)
    return caught.value.problems


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("llama-3.1-8b", 8_030_261_248), ("llama-3.2-1b", 1_235_814_400), ("llama-3.3-70b", 70_553_706_496)],
)
def test_parameters_are_the_published_ones(model, parameters):
    assert dims_of(model).parameters() == parameters


def test_a_sparse_model_has_its_published_size():
    dims = dims_of("qwen3-30b-a3b")
    assert dims.parameters() == pytest.approx(30.5e9, rel=0.002)
    active = dims.active_layers_parameters() + 2 * dims.head_parameters()
    assert active == pytest.approx(3.3e9, rel=0.02)


def test_kv_bytes():
    assert dims_of("llama-3.1-8b").kv_bytes_per_token() == 131_072
    assert dims_of("llama-3.3-70b").kv_bytes_per_token(4) == 80 * 2 * 2 * 128 * 2
    assert dims_of("llama-3.3-70b").kv_bytes_per_token(16) == 80 * 2 * 1 * 128 * 2  # replicated


def test_an_eagle_head_is_one_dense_layer():
    head = eagle_head(dims_of("qwen3-30b-a3b"))
    assert (head.num_hidden_layers, head.moe_layers, head.hidden_size) == (1, 0, 2048)
    assert head.layers_parameters() < dims_of("qwen3-30b-a3b").layers_parameters() / 48


def test_defaults(tmp_path):
    dims = load_model_dims(written(tmp_path / "c.json", head_dim=None, num_experts=None, rope_theta=1e4)).dims
    assert (dims.key_value_heads, dims.head_width, dims.moe_layers) == (8, 8, 0)
    tied = load_model_dims(written(tmp_path / "c.json", tie_word_embeddings="absent")).dims
    assert dims.parameters() - tied.parameters() == 64 * 1000


def test_head_dim_is_read(tmp_path):
    assert load_model_dims(written(tmp_path / "c.json", head_dim=16)).dims.head_width == 16


@pytest.mark.parametrize("name", ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"])
def test_experts_under_every_name(tmp_path, name):
    dims = load_model_dims(written(tmp_path / "c.json", **{name: 8, "num_experts_per_tok": 2})).dims
    assert dims.moe_layers == 4
    assert dims.expert_parameters() == 3 * 64 * 256
    assert dims.layers_parameters() - dims.active_layers_parameters() == 4 * 6 * 3 * 64 * 256


def test_a_name_that_is_null_stands_back_for_another(tmp_path):
    sparse = {"num_experts": None, "num_local_experts": 8, "num_experts_per_tok": None, "moe_k": 2}
    dims = load_model_dims(written(tmp_path / "c.json", **sparse)).dims
    assert (dims.num_experts, dims.num_experts_per_tok, dims.moe_layers) == (8, 2, 4)


def test_experts_under_the_names_of_ernie(tmp_path):
    width = {"moe_intermediate_size": 32, "moe_layer_interval": 1}
    ernie = {"moe_num_experts": 8, "moe_k": 2, "moe_num_shared_experts": 2, "moe_layer_start_index": 1}
    other = {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 2, "first_k_dense_replace": 1}
    for end in (None, -1, 3):
        path = written(tmp_path / "c.json", **width, **ernie, moe_layer_end_index=end)
        assert load_model_dims(path).dims == load_model_dims(written(tmp_path / "o.json", **width, **other)).dims


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, []),
        ({"torch_dtype": "bfloat16", "quantization_config": None}, []),
        ({"dtype": "float16"}, []),
        ({"torch_dtype": None, "dtype": "float32"}, ["dtype"]),
        ({"torch_dtype": "float32"}, ["torch_dtype"]),
        ({"torch_dtype": "bfloat16", "quantization_config": {"bits": 4}}, ["quantization_config"]),
        ({"torch_dtype": "float32", "quantization_config": {"bits": 4}}, ["quantization_config", "torch_dtype"]),
    ],
)
@pytest.mark.parametrize("multimodal", ["", "whole", "part"])
def test_weights_of_another_width_are_told(tmp_path, changes, fields, multimodal):
    path = written(tmp_path / "c.json", **changes)
    if multimodal:
        whole = {"text_config": SMALL, **changes} if multimodal == "whole" else {"text_config": {**SMALL, **changes}}
        path.write_text(json.dumps(whole, indent=1), "utf-8")
    found = dtype_problems(load_model_dims(path))
    prefix = "text_config." if multimodal == "part" else ""
    assert [problem.field for problem in found] == [prefix + field for field in fields]
    assert all("--dtype" in problem.remedy and problem.line > 1 for problem in found)


def test_the_text_part_says_its_own_dtype(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"torch_dtype": "float32", "text_config": {**SMALL, "dtype": "float16"}}), "utf-8")
    model = load_model_dims(path)
    assert (model.dims.torch_dtype, dtype_problems(model)) == ("float16", [])


def test_dense_layers_and_shared_experts(tmp_path):
    sparse = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    plain = load_model_dims(written(tmp_path / "c.json", **sparse)).dims
    shared = load_model_dims(written(tmp_path / "c.json", **sparse, n_shared_experts=2)).dims
    assert shared.parameters() - plain.parameters() == 4 * 3 * 64 * 2 * 32
    dense = load_model_dims(written(tmp_path / "c.json", **sparse, first_k_dense_replace=1)).dims
    assert (dense.dense_layers, dense.moe_layers) == (1, 3)


def test_dims_of_a_multimodal_model(tmp_path):
    path = tmp_path / "c.json"
    nested = {key: value for key, value in SMALL.items() if key != "tie_word_embeddings"}
    path.write_text(json.dumps({"text_config": nested, "vision_config": {}, "tie_word_embeddings": False}), "utf-8")
    assert load_model_dims(path).dims == load_model_dims(written(tmp_path / "plain.json")).dims
    path.write_text('{"text_config": {\n  "hidden_size": -1}}', "utf-8")
    first = next(problem for problem in problems(path) if problem.field == "text_config.hidden_size")
    assert (first.line, first.column) == (2, 18)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"hidden_size": "absent"}, "hidden_size", "is missing"),
        ({"hidden_size": True}, "hidden_size", "boolean"),
        ({"vocab_size": 0}, "vocab_size", "out of range"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers", "text"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "do not divide"),
        ({"hidden_size": 63}, "hidden_size", "no multiple"),
        ({"num_local_experts": 8}, "num_experts_per_tok", "none of 8 experts"),
        ({"num_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok", "9 of 8 experts"),
        ({"kv_lora_rank": 512}, "kv_lora_rank", "latent"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step", "some layers"),
        ({"expert_layer_period": 2}, "expert_layer_period", "some layers"),
        ({"moe_layer_interval": 2}, "moe_layer_interval", "some layers"),
        ({"moe_layer_end_index": 2}, "moe_layer_end_index", "dense layers"),
        ({"full_attention_interval": 4}, "full_attention_interval", "without attention"),
        ({"attn_layer_period": 8}, "attn_layer_period", "without attention"),
        ({"hybrid_override_pattern": "M-M*"}, "hybrid_override_pattern", "without attention"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "layer_types", "without attention"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder", "encoder"),
    ],
)
def test_what_cannot_be_is_told(tmp_path, changes, field, says):
    found = problems(written(tmp_path / "c.json", **changes))
    assert [problem.field for problem in found] == [field]
    assert says in found[0].what
    assert found[0].remedy


def test_all_problems_at_once(tmp_path):
    found = problems(written(tmp_path / "c.json", hidden_size="absent", vocab_size=-1, kv_lora_rank=8))
    assert {problem.field for problem in found} == {"hidden_size", "vocab_size", "kv_lora_rank"}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hidden_size": 1e400}', "\x00", "3"])
def test_no_text_is_a_traceback(tmp_path, text):
    path = tmp_path / "c.json"
    path.write_text(text, "utf-8")
    assert problems(path)


def test_what_does_not_divide():
    dims = dims_of("llama-3.1-8b")
    assert tensor_parallel_findings(dims, 4) == tensor_parallel_findings(dims, 16) == []
    assert {finding.field for finding in tensor_parallel_findings(dims, 3)} == {
        "num_attention_heads",
        "intermediate_size",
        "num_key_value_heads",
    }


@given(
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    kv_heads=st.sampled_from([1, 2, 4, 16]),
    experts=st.integers(0, 8),
    layers=st.integers(1, 4),
    vocab=st.integers(1, 999),
)
@settings(deadline=None, max_examples=50)
def test_shares_make_the_whole(tp, kv_heads, experts, layers, vocab):
    data = {**SMALL, "num_attention_heads": 16, "num_key_value_heads": kv_heads, "num_experts": experts}
    data |= {"num_experts_per_tok": min(1, experts), "num_hidden_layers": layers, "vocab_size": vocab, "head_dim": 4}
    dims = ModelDims.model_validate(data)
    assert tp * dims.weight_bytes(tp=tp) >= dims.weight_bytes()
    assert tp * dims.expert_parameters(tp) == dims.expert_parameters()
    assert tp * dims.kv_bytes_per_token(tp) == max(1, tp / kv_heads) * dims.kv_bytes_per_token()
    assert dims.layers_parameters(tp) >= dims.active_layers_parameters(tp) >= dims.always_read_parameters(tp)
