"""Rules between the engine's limits, the drafts and the lengths: what could never be scheduled."""

from __future__ import annotations

from collections.abc import Iterator

from .parts import Parts
from .scenario import LOOKUP_METHODS, Engine, Length, Slice, Speculation, Uniform
from .source import Finding
from .wording import did_you_mean, listed, shown

NULL_BLOCKS = 1  # an engine keeps one KV block that holds nothing


def engine_findings(parts: Parts) -> Iterator[Finding]:
    """Limits that contradict each other, or under which nothing or some request can never run."""
    engine = parts.engine
    if engine is None:
        return
    for key in ("num_gpu_blocks", "num_gpu_blocks_baseline"):
        if getattr(engine, key) == NULL_BLOCKS:
            yield Finding(f"engine.{key}", "1 block", "one block holds nothing", "give 2 or more")
    for place, part in parts.slices.items():
        yield from _model_length(f"workload.slices.{place}", part, engine)
        yield from _prefixes(f"workload.slices.{place}", part, engine)
    if engine.style != "vllm":
        yield from _only_vllm(engine)
    if engine.pools is not None:
        yield from _pools(engine, parts)
    if engine.style == "sglang":
        yield from _prefill_chunk(engine)
        if parts.speculation is not None and parts.speculation.method in LOOKUP_METHODS:
            rule = "style sglang knows chains of drafts only"
            yield Finding("speculation.method", f"is {parts.speculation.method}", rule, "use style vllm")
    if engine.style == "vllm":  # a fixed batch has no token budget
        yield from _budgets(engine, parts.speculation)
        if not engine.enable_chunked_prefill:
            for place, part in parts.slices.items():
                yield from _whole_prompt(f"workload.slices.{place}", part, engine, _draft_slots(parts.speculation))


def _prefixes(path: str, part: Slice, engine: Engine) -> Iterator[Finding]:
    """A prefix is either always hit, or found in a cache that is simulated."""
    if part.prefix_hit_tokens and engine.caches_prefixes:
        rule = "with prefix_caching the cache decides what is hit"
        remedy = "give shared_prefix_tokens instead"
        yield Finding(f"{path}.prefix_hit_tokens", f"is {part.prefix_hit_tokens}", rule, remedy)
    if part.shared_prefix_tokens and not engine.caches_prefixes:
        rule = "without engine.prefix_caching nothing is shared"
        remedy = "add `prefix_caching: true` to engine, or give prefix_hit_tokens"
        yield Finding(f"{path}.shared_prefix_tokens", f"is {part.shared_prefix_tokens}", rule, remedy)
    if part.priority and engine.scheduling_policy != "priority":
        rule = "scheduling_policy fcfs knows no priorities"
        yield Finding(f"{path}.priority", f"is {part.priority}", rule, "add `scheduling_policy: priority` to engine")


def _pools(engine: Engine, parts: Parts) -> Iterator[Finding]:
    """Every slice is served by one pool."""
    names = [part.name for part in parts.slices.values()]
    served: dict[str, int] = {}
    for place, pool in enumerate(engine.pools or []):
        for index, name in enumerate(pool.slices):
            path = f"engine.pools.{place}.slices.{index}"
            if parts.all_slices and name not in names:
                yield Finding(
                    path,
                    f"{shown(name)} is no slice",
                    f"slices are {listed(names)}",
                    did_you_mean(name, names, "remove it"),
                )
            elif served.setdefault(name, place) != place or pool.slices.index(name) != index:
                yield Finding(path, f"{shown(name)} is served already", "a slice has one pool", "remove it here")
        most = parts.speculation.num_speculative_tokens if parts.speculation else None
        if most is not None and pool.num_speculative_tokens is not None and pool.num_speculative_tokens > most:
            what, rule = f"{pool.num_speculative_tokens} draft tokens", f"at most speculation's own {most}"
            yield Finding(f"engine.pools.{place}.num_speculative_tokens", what, rule, "raise that or lower this")
    missing = [name for name in names if name not in served]
    if parts.all_slices and missing:
        rule = "every slice is served by a pool"
        yield Finding("engine.pools", f"no pool serves {listed(missing)}", rule, "add them to a pool")
    if engine.replicas != 1:
        yield Finding("engine.replicas", "is given beside pools", "pools have replicas of their own", "remove it")


def _only_vllm(engine: Engine) -> Iterator[Finding]:
    rule = f"style {engine.style} has none"
    if engine.caches_prefixes:
        yield Finding("engine.prefix_caching", "is on", rule, "remove it or use style vllm")
    if engine.scheduling_policy != "fcfs":
        yield Finding("engine.scheduling_policy", f"is {engine.scheduling_policy}", rule, "remove it or use style vllm")


def _budgets(engine: Engine, speculation: Speculation | None) -> Iterator[Finding]:
    batched, scheduled = engine.max_num_batched_tokens, engine.max_num_scheduled_tokens
    if batched is not None and scheduled is not None and scheduled > batched:
        what, rule = f"{scheduled} of {batched} batched tokens", "max_num_scheduled_tokens <= max_num_batched_tokens"
        yield Finding("engine.max_num_scheduled_tokens", what, rule, f"give {batched} or less")
    drafts = speculation.num_speculative_tokens if speculation else 0
    for key, budget, need in (
        ("max_num_batched_tokens", batched, 1 + drafts + _draft_slots(speculation)),
        ("max_num_scheduled_tokens", scheduled, 1 + drafts),
    ):
        if budget is not None and budget < need:
            rule = f"one request with {drafts} draft tokens takes {need} tokens of the budget"
            yield Finding(f"engine.{key}", f"{budget} tokens", rule, f"give {need} or more, or fewer draft tokens")


def _prefill_chunk(engine: Engine) -> Iterator[Finding]:
    """SGLang cuts prompts into whole pages, and only chunks of 2 tokens or more get a prompt done."""
    page = engine.page_size or engine.block_size or 1
    own = engine.chunked_prefill_size
    key = "chunked_prefill_size" if own is not None else "max_num_batched_tokens"
    chunk = own if own is not None else engine.max_num_batched_tokens
    if chunk is None or chunk == -1:
        return
    least = max(2, page)
    if chunk < least:
        yield Finding(f"engine.{key}", f"{chunk} tokens", f"a chunk has {least} tokens or more", "give more, or -1")
    elif own is not None and chunk % page:
        rule = f"SGLang wants a multiple of the page size, {page}"
        yield Finding(f"engine.{key}", f"{chunk} tokens", rule, f"give {chunk // page * page}")


def _draft_slots(speculation: Speculation | None) -> int:
    """Input budget per row beyond its tokens: a draft model takes one more row of each request (vLLM)."""
    drafting = speculation is not None and speculation.num_speculative_tokens > 0
    return 1 if drafting and speculation is not None and speculation.method == "draft_model" else 0


def _shortest(length: Length | None) -> int:
    """The fewest tokens that the length can be."""
    if isinstance(length, int):
        return length
    return length.low if isinstance(length, Uniform) else 1


def _model_length(path: str, part: Slice, engine: Engine) -> Iterator[Finding]:
    shortest = _shortest(part.prompt_tokens) + _shortest(part.output_tokens)
    if engine.max_model_len is not None and shortest > engine.max_model_len:
        key = "prompt_tokens" if part.prompt_tokens is not None else "output_tokens"
        what = f"prompt and output have at least {shortest} tokens"
        rule = f"max_model_len is {engine.max_model_len}"
        yield Finding(f"{path}.{key}", what, rule, "shorten them or raise engine.max_model_len")


def _whole_prompt(path: str, part: Slice, engine: Engine, draft_slots: int) -> Iterator[Finding]:
    """Without chunked prefill a prompt that is longer than a step's budget waits for ever."""
    batched, scheduled = engine.max_num_batched_tokens, engine.max_num_scheduled_tokens
    budgets = [batched - draft_slots] if batched is not None else []
    budgets += [scheduled] if scheduled is not None else []
    to_compute = _shortest(part.prompt_tokens) - part.prefix_hit_tokens
    if budgets and to_compute > min(budgets):
        what = f"at least {to_compute} tokens in one step"
        rule = f"without chunked prefill a prompt fits into the budget of {min(budgets)}"
        yield Finding(f"{path}.prompt_tokens", what, rule, "raise max_num_batched_tokens or chunk the prefill")
