"""Each style has its own words; a word that no arm's style knows is told, with the common one."""

import pytest

from sim.inputs.errors import InputError
from sim.inputs.load import load_scenario


def problems(*sets):
    with pytest.raises(InputError) as error:
        load_scenario(None, sets)
    return [(problem.field, problem.remedy) for problem in error.value.problems]


@pytest.mark.parametrize(
    ("key", "value", "common"),
    [
        ("max_running_requests", 48, "max_num_seqs"),
        ("chunked_prefill_size", 4096, "max_num_batched_tokens"),
        ("page_size", 16, "block_size"),
        ("mem_fraction_static", 0.8, "gpu_memory_utilization"),
        ("max_total_tokens", 100000, "num_gpu_blocks"),
        ("disable_overlap_schedule", "true", "async_scheduling"),
    ],
)
def test_a_word_of_sglang_is_refused_in_other_styles(key, value, common):
    for style in ("vllm", "fixed_batch"):
        found = problems(f"engine.{key}={value}", f"engine.style={style}")
        assert found == [(f"engine.{key}", f"use {common}, or set engine.style: sglang")]
    assert load_scenario(None, [f"engine.{key}={value}", "engine.style=sglang"])


@pytest.mark.parametrize(
    "setting", ["max_num_scheduled_tokens=4096", "long_prefill_token_threshold=100", "watermark=0.1"]
)
def test_a_word_of_vllm_is_refused_by_sglang(setting):
    key = setting.partition("=")[0]
    assert problems(f"engine.{setting}", "engine.style=sglang") == [
        (f"engine.{key}", "remove it, or set engine.style: vllm")
    ]


def test_words_may_be_for_any_arm_and_an_arm_sets_only_its_own():
    both = ["arms={sglang: {engine.style: sglang, engine.chunked_prefill_size: 4096}}"]
    assert load_scenario(None, [*both, "engine.watermark=0.1", "engine.max_prefill_tokens=9000"])
    wrong = problems("arms={other: {engine.page_size: 16}}")
    assert wrong == [("arms.other.engine.page_size", "use block_size, or set engine.style: sglang")]


@pytest.mark.parametrize(
    ("sets", "field"),
    [
        (["engine.chunked_prefill_size=0"], "engine.chunked_prefill_size"),
        (["engine.chunked_prefill_size=1"], "engine.chunked_prefill_size"),
        (["engine.chunked_prefill_size=100", "engine.page_size=16"], "engine.chunked_prefill_size"),
        (["engine.max_num_batched_tokens=8", "engine.block_size=16"], "engine.max_num_batched_tokens"),
        (["engine.prefix_caching=true"], "engine.prefix_caching"),
        (["speculation.method=ngram"], "speculation.method"),
    ],
)
def test_what_sglang_cannot_run(sets, field):
    assert field in [name for name, _ in problems("engine.style=sglang", *sets)]


def test_minus_one_and_whole_pages_are_fine():
    for value in (-1, 2, 8192):
        assert load_scenario(None, ["engine.style=sglang", f"engine.chunked_prefill_size={value}"])
