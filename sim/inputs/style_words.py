"""Words of one engine that mean nothing to another: a key that no arm's style knows is a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .arm_overrides import arm_data
from .scenario import Engine
from .source import Finding

OWN_WORDS = {
    "sglang": (
        "max_running_requests",
        "chunked_prefill_size",
        "max_prefill_tokens",
        "page_size",
        "mem_fraction_static",
        "max_total_tokens",
        "schedule_conservativeness",
        "disable_overlap_schedule",
    ),
    "vllm": (
        "max_num_scheduled_tokens",
        "long_prefill_token_threshold",
        "adaptive_long_prefill_threshold",
        "scheduler_reserve_full_isl",
        "watermark",
    ),
}
COMMON_WORDS = {
    "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "max_num_batched_tokens",
    "page_size": "block_size",
    "mem_fraction_static": "gpu_memory_utilization",
    "max_total_tokens": "num_gpu_blocks",
    "disable_overlap_schedule": "async_scheduling",
}
STYLES = ("vllm", "sglang", "fixed_batch")
_LETS_PASS = {"fixed_batch": "vllm"}  # it has none of vLLM's rules, and takes its words as said of other arms


def style_findings(data: Mapping[str, Any]) -> Iterator[Finding]:
    """Keys of `engine` that belong to a style no arm has, and those that an arm sets for a style it has not."""
    known: set[str] = set()
    for name, (own_data, origins) in arm_data(data).items():
        engine = own_data.get("engine")
        engine = engine if isinstance(engine, dict) else {}
        style = engine.get("style", "vllm")
        if style not in STYLES:
            return  # told already; nobody knows which words it has
        words = {style, _LETS_PASS.get(style, style)}
        known |= words
        here = {key: origins[f"engine.{key}"] for key in engine if f"engine.{key}" in origins}
        for owner, key in _foreign({key: engine[key] for key in here}, words):
            yield _finding(here[key], key, owner, f"arm {name} has style {style}")
    common = data.get("engine")
    for owner, key in _foreign(common if isinstance(common, dict) else {}, known):
        yield _finding(f"engine.{key}", key, owner, f"no arm has style {owner}")


def _foreign(engine: Mapping[str, Any], styles: set[str]) -> Iterator[tuple[str, str]]:
    """Keys with a value that is not their default, owned by none of the styles."""
    for owner, keys in OWN_WORDS.items():
        if owner not in styles:
            for key in keys:
                if key in engine and engine[key] != Engine.model_fields[key].default:
                    yield owner, key


def _finding(path: str, key: str, owner: str, rule: str) -> Finding:
    common = COMMON_WORDS.get(key)
    remedy = f"use {common}" if common else "remove it"
    return Finding(path, f"is a word of style {owner}", rule, f"{remedy}, or set engine.style: {owner}", at_key=True)
