"""Speculation settings in the words of serving engines, to paste: fixed draft lengths and schedules by batch size.

Versions are those whose rules are written down here; another version may read the same words differently.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from ..inputs.scenario import Speculation

Ranges = Sequence[Sequence[int]]

VLLM, SGLANG, TRTLLM, LLAMACPP = "vLLM", "SGLang", "TensorRT-LLM", "llama.cpp"
VLLM_VERSION, SGLANG_VERSION, LLAMACPP_VERSION = "0.33.0", "0.5.23", "2026-11"
TRTLLM_UPPER, TRTLLM_LOWER = "1.3 (from March 2026)", "1.2"
DRAFT = "YOUR_DRAFT_MODEL"

# Keys of `speculation` that vLLM takes as they are, beside method and length.
_VLLM_KEYS = (
    "model",
    "draft_tensor_parallel_size",
    "quantization",
    "kv_cache_dtype",
    "attention_backend",
    "draft_sample_method",
    "rejection_sample_method",
    "prompt_lookup_min",
    "prompt_lookup_max",
)
_NEEDS_MODEL = ("draft_model", "eagle", "eagle3")
_NO_SCHEDULE = ("suffix",)
_SGLANG = {"draft_model": "STANDALONE", "eagle": "EAGLE", "eagle3": "EAGLE3", "mtp": "NEXTN", "ngram": "NGRAM"}
_SGLANG_ADAPTIVE = ("eagle", "eagle3")
_TRTLLM = {"draft_model": "DraftTarget", "eagle3": "Eagle3", "mtp": "MTP", "ngram": "NGram", "suffix": "SA"}
_LLAMACPP = {
    "draft_model": "draft-simple",
    "eagle3": "draft-eagle3",
    "mtp": "draft-mtp",
    "ngram": "ngram-simple",
    "suffix": "ngram-mod",
}


class Flags(NamedTuple):
    """Text to paste, empty where the engine has none for this; and what its user has to know."""

    engine: str
    version: str
    text: str
    notes: tuple[str, ...] = ()


def fixed_flags(speculation: Speculation, drafts: int, max_num_seqs: int) -> list[Flags]:
    """Every engine with one draft length; 0: without speculation."""
    if not drafts:
        off = "no speculation: leave every speculative option out"
        engines = ((VLLM, VLLM_VERSION), (SGLANG, SGLANG_VERSION), (TRTLLM, TRTLLM_UPPER), (LLAMACPP, LLAMACPP_VERSION))
        return [Flags(engine, version, "", (off,)) for engine, version in engines]
    sglang, notes = _sglang_flags(speculation, drafts, max_num_seqs)
    return [
        Flags(VLLM, VLLM_VERSION, vllm_flag(speculation, drafts), _draft_notes(speculation)),
        Flags(SGLANG, SGLANG_VERSION, sglang, notes),
        _trtllm(TRTLLM_UPPER, speculation, drafts, []),
        _llamacpp(speculation, drafts, max_num_seqs),
    ]


def schedule_flags(speculation: Speculation, ranges: Ranges, max_num_seqs: int) -> list[Flags]:
    """Every engine with a schedule of draft lengths, as [first, last, drafts] by the requests of a step."""
    most = max(1, *(drafts for _, _, drafts in ranges))
    vllm = vllm_flag(speculation, most, ranges)
    notes = _draft_notes(speculation)
    if speculation.method in _NO_SCHEDULE:
        vllm, notes = "", (f"method {speculation.method} takes no schedule",)
    return [
        Flags(VLLM, VLLM_VERSION, vllm, notes),
        _sglang_schedule(speculation, ranges, most, max_num_seqs),
        _trtllm(TRTLLM_UPPER, speculation, most, upper_keys(ranges)),
        _trtllm(TRTLLM_LOWER, speculation, most, lower_keys(ranges, most)),
        Flags(LLAMACPP, LLAMACPP_VERSION, "", ("has no schedule by load: take one length",)),
    ]


def vllm_flag(speculation: Speculation, drafts: int, ranges: Ranges | None = None) -> str:
    """`--speculative-config '{…}'`, quoted for a shell."""
    config = {"method": speculation.method} | {
        key: value for key in _VLLM_KEYS if (value := getattr(speculation, key)) is not None
    }
    if speculation.method in _NEEDS_MODEL:
        config.setdefault("model", DRAFT)
    config["num_speculative_tokens"] = drafts
    if ranges is not None:
        config["num_speculative_tokens_per_batch_size"] = [list(one) for one in ranges]
    return f"--speculative-config {shlex.quote(json.dumps(config))}"


def _draft_notes(speculation: Speculation) -> tuple[str, ...]:
    if speculation.method in _NEEDS_MODEL and speculation.model is None:
        return (f"the scenario names no draft model: put yours in place of {DRAFT}",)
    return ()


def _sglang_flags(speculation: Speculation, drafts: int, max_num_seqs: int) -> tuple[str, tuple[str, ...]]:
    algorithm = _SGLANG.get(speculation.method)
    if algorithm is None:
        return "", (f"has no method {speculation.method}",)
    flags = [f"--speculative-algorithm {algorithm}"]
    if speculation.method in _NEEDS_MODEL:
        flags.append(f"--speculative-draft-model-path {shlex.quote(speculation.model or DRAFT)}")
    if speculation.method == "ngram":
        flags.append(f"--speculative-num-draft-tokens {drafts + 1}")
    else:
        flags += [f"--speculative-num-steps {drafts}", "--speculative-eagle-topk 1"]
        flags.append(f"--speculative-num-draft-tokens {drafts + 1}")
    flags.append(f"--max-running-requests {max_num_seqs}")
    unset = "without --max-running-requests only 48 requests run with speculation"
    return " ".join(flags), (*_draft_notes(speculation), unset)


def sglang_slots(ranges: Ranges) -> dict[str, dict[str, list[int]]]:
    """The file of `--speculative-adaptive-config`: from each batch size on one candidate, so that nothing adapts."""
    return {str(first): {"candidate_steps": [drafts]} for first, _, drafts in ranges}


def _sglang_schedule(speculation: Speculation, ranges: Ranges, most: int, max_num_seqs: int) -> Flags:
    if speculation.method not in _SGLANG_ADAPTIVE:
        return Flags(SGLANG, SGLANG_VERSION, "", ("adapts lengths for EAGLE and EAGLE3 only: take one length",))
    flags, notes = _sglang_flags(speculation, most, max_num_seqs)
    slots = shlex.quote(json.dumps(sglang_slots(ranges)))
    text = (
        f"printf '%s' {slots} > adaptive.json\n"
        f"{flags} --speculative-adaptive --speculative-adaptive-config adaptive.json"
    )
    residual = "at 0 steps the draft-extend pass still runs" if any(not drafts for _, _, drafts in ranges) else ""
    return Flags(SGLANG, SGLANG_VERSION, text, (*notes, *([residual] if residual else [])))


def upper_keys(ranges: Ranges) -> list[tuple[int, int]]:
    """`draft_len_schedule` whose keys are the largest batch of a length; above the last one nothing is drafted."""
    keys = [(last, drafts) for _, last, drafts in ranges]
    while len(keys) > 1 and keys[-1][1] == 0:
        keys.pop()
    return keys


def lower_keys(ranges: Ranges, most: int) -> list[tuple[int, int]]:
    """`draft_len_schedule` whose keys are the smallest batch of a length; empty where the longest is not the first.

    The engine wants batch 1 to have max_draft_len.
    """
    keys = [(first, drafts) for first, _, drafts in ranges]
    return keys if keys[0][1] == most else []


def _trtllm(version: str, speculation: Speculation, drafts: int, schedule: Sequence[tuple[int, int]]) -> Flags:
    decoding = _TRTLLM.get(speculation.method)
    if decoding is None:
        return Flags(TRTLLM, version, "", (f"has no method {speculation.method}",))
    lines = ["speculative_config:", f"  decoding_type: {decoding}", f"  max_draft_len: {drafts}"]
    notes = list(_draft_notes(speculation))
    if speculation.method in _NEEDS_MODEL:
        lines.append(f"  speculative_model: {json.dumps(speculation.model or DRAFT)}")
    if version == TRTLLM_LOWER and not schedule:
        notes.append("batch 1 must have max_draft_len there, which this schedule does not give: take one length")
        return Flags(TRTLLM, version, "", tuple(notes))
    on = [key for key, length in schedule if length]
    if version == TRTLLM_UPPER and len({length for _, length in schedule if length}) == 1 and len(schedule) == len(on):
        lines.append(f"  max_concurrency: {on[-1]}")
    elif schedule:
        keys = ", ".join(f"{key}: {length}" for key, length in schedule)
        lines.append(f"  draft_len_schedule: {{{keys}}}")
        meaning = "up to this batch size" if version == TRTLLM_UPPER else "from this batch size on"
        notes.append(f"a key of draft_len_schedule means {meaning} in {version}; other versions read it the other way")
    if any(not length for _, length in schedule):
        notes.append("newer one-model paths keep at least one draft where the schedule says 0")
    return Flags(TRTLLM, version, "\n".join(lines), tuple(notes))


def _llamacpp(speculation: Speculation, drafts: int, max_num_seqs: int) -> Flags:
    kind = _LLAMACPP.get(speculation.method)
    if kind is None:
        return Flags(LLAMACPP, LLAMACPP_VERSION, "", (f"has no method {speculation.method}",))
    flags = [f"llama-server --spec-type {kind}"]
    if speculation.method in ("draft_model", "eagle3"):
        flags.append(f"--spec-draft-model {shlex.quote(speculation.model or DRAFT)}")
    if kind == "ngram-mod":
        flags.append(f"--spec-ngram-mod-n-max {drafts}")
    else:
        flags.append(f"--spec-draft-n-max {drafts}")
    flags.append(f"--parallel {max_num_seqs}")
    return Flags(LLAMACPP, LLAMACPP_VERSION, " ".join(flags), _draft_notes(speculation))
