"""Flags to paste: read back by the engines' own rules they give the same draft length at every batch size."""

import json
import shlex
from itertools import pairwise

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.policies import schedule_lookup
from sim.formats.engine_flags import (
    DRAFT,
    TRTLLM_LOWER,
    TRTLLM_UPPER,
    fixed_flags,
    lower_keys,
    schedule_flags,
    sglang_slots,
    upper_keys,
    vllm_flag,
)
from sim.inputs.checks import scenario_findings
from sim.inputs.scenario import Speculation

EAGLE3 = Speculation(method="eagle3", model="org/it's a head", num_speculative_tokens=3)
MOST = 300


@st.composite
def schedules(draw):
    """Ranges from 1 to `MOST`, as `tune` makes them: sorted, without gaps, neighbours of different lengths."""
    lasts = sorted(draw(st.sets(st.integers(1, MOST - 1), max_size=5)))
    drafts = []
    for _ in range(len(lasts) + 1):
        drafts.append(draw(st.integers(0, 8).filter(lambda k: not drafts or k != drafts[-1])))
    firsts = [1, *(last + 1 for last in lasts)]
    return [[first, last, k] for first, last, k in zip(firsts, [*lasts, MOST], drafts, strict=True)]


def read_vllm(flag):
    """What a shell and vLLM's JSON parser make of the flag."""
    name, value = shlex.split(flag)
    assert name == "--speculative-config"
    return json.loads(value)


@given(schedules())
def test_a_pasted_vllm_schedule_obeys_its_rules_and_is_the_same_policy(ranges):
    most = max(1, *(k for _, _, k in ranges))
    config = read_vllm(vllm_flag(EAGLE3, most, ranges))
    table = config["num_speculative_tokens_per_batch_size"]
    assert table[0][0] == 1
    assert all(first <= last for first, last, _ in table)
    assert all(before[1] < after[0] for before, after in pairwise(table))
    assert all(0 <= k <= config["num_speculative_tokens"] for _, _, k in table)
    data = {
        "calibration": "h100-llama-3.1-8b-eagle",
        "workload": {
            "requests": 1,
            "arrivals": {"kind": "at_once"},
            "slices": [
                {"name": "a", "prompt_tokens": 9, "output_tokens": 9, "acceptance": {"kind": "iid", "alpha": 0.5}}
            ],
        },
        "speculation": config,
    }
    assert scenario_findings(data) == []
    read = Speculation.model_validate(config)
    assert read.model == EAGLE3.model
    lookup = schedule_lookup(read.num_speculative_tokens_per_batch_size, read.num_speculative_tokens)
    wanted = schedule_lookup(ranges, most)
    assert lookup == wanted
    for requests in (1, 2, 50, MOST):
        inside = next(k for first, last, k in ranges if first <= requests <= last)
        assert lookup[min(requests, len(lookup) - 1)] == inside


@given(schedules())
def test_both_meanings_of_a_tensorrt_schedule_give_the_same_lengths(ranges):
    most = max(1, *(k for _, _, k in ranges))
    upper, lower = dict(upper_keys(ranges)), dict(lower_keys(ranges, most))
    assert bool(lower) == (ranges[0][2] == most)
    for first, last, drafts in ranges:
        for batch in (first, last):
            above = [key for key in upper if key >= batch]
            assert (upper[min(above)] if above else 0) == drafts
            if lower:
                assert lower[max(key for key in lower if key <= batch)] == drafts


@given(schedules())
def test_sglang_slots_leave_nothing_to_adapt(ranges):
    slots = {int(key): value["candidate_steps"] for key, value in sglang_slots(ranges).items()}
    for first, last, drafts in ranges:
        for batch in (first, last):
            assert slots[max(key for key in slots if key <= batch)] == [drafts]


def test_every_engine_has_its_own_words_for_a_schedule():
    ranges = [[1, 16, 4], [17, 64, 2], [65, 256, 0]]
    by_engine = {(one.engine, one.version): one for one in schedule_flags(EAGLE3, ranges, 256)}
    upper, lower = by_engine["TensorRT-LLM", TRTLLM_UPPER], by_engine["TensorRT-LLM", TRTLLM_LOWER]
    assert yaml.safe_load(upper.text)["speculative_config"]["draft_len_schedule"] == {16: 4, 64: 2}
    assert yaml.safe_load(lower.text)["speculative_config"] == {
        "decoding_type": "Eagle3",
        "max_draft_len": 4,
        "speculative_model": "org/it's a head",
        "draft_len_schedule": {1: 4, 17: 2, 65: 0},
    }
    assert "up to this batch size" in " ".join(upper.notes)
    assert "from this batch size on" in " ".join(lower.notes)
    sglang = by_engine["SGLang", "0.5.23"].text
    assert "--speculative-adaptive-config adaptive.json" in sglang
    assert json.loads(shlex.split(sglang.splitlines()[0])[2])["65"] == {"candidate_steps": [0]}
    assert next(one for (engine, _), one in by_engine.items() if engine == "llama.cpp").text == ""


def test_one_length_up_to_a_load_is_a_concurrency_limit_in_tensorrt():
    (flags,) = [one for one in schedule_flags(EAGLE3, [[1, 32, 3], [33, 256, 0]], 256) if one.version == TRTLLM_UPPER]
    assert yaml.safe_load(flags.text)["speculative_config"]["max_concurrency"] == 32


def test_fixed_lengths():
    vllm, sglang, trtllm, llama = fixed_flags(EAGLE3, 3, 128)
    assert read_vllm(vllm.text) == {"method": "eagle3", "model": "org/it's a head", "num_speculative_tokens": 3}
    words = shlex.split(sglang.text)
    values = dict(zip(words[::2], words[1::2], strict=True))
    assert values["--speculative-num-steps"] == "3"
    assert values["--speculative-num-draft-tokens"] == "4"
    assert values["--speculative-eagle-topk"] == "1"
    assert values["--max-running-requests"] == "128"
    assert yaml.safe_load(trtllm.text)["speculative_config"]["max_draft_len"] == 3
    assert "--spec-draft-n-max 3" in llama.text
    assert all(one.text == "" and one.notes for one in fixed_flags(EAGLE3, 0, 128))


def test_what_an_engine_lacks_is_said_and_a_missing_model_is_named():
    for method in ("draft_model", "eagle", "eagle3", "mtp", "ngram", "suffix"):
        speculation = Speculation(method=method, num_speculative_tokens=2)
        for flags in (*fixed_flags(speculation, 2, 8), *schedule_flags(speculation, [[1, 4, 2], [5, 8, 1]], 8)):
            assert flags.text or flags.notes, (method, flags)
            assert (DRAFT in flags.text) <= any(DRAFT in note for note in flags.notes)
    assert schedule_flags(Speculation(method="suffix", num_speculative_tokens=2), [[1, 8, 2]], 8)[0].text == ""
