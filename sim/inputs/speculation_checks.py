"""Rules of `speculation`: schedules and policies of the draft length, and which keys belong to which method."""

from __future__ import annotations

from collections.abc import Iterator

from .parts import Parts
from .scenario import LOOKUP_METHODS, Speculation
from .source import Finding

_SCHEDULE = "speculation.num_speculative_tokens_per_batch_size"


def speculation_findings(parts: Parts) -> Iterator[Finding]:
    """Mistakes between the keys of `speculation`, and between them and the engine."""
    speculation = parts.speculation
    if speculation is None:
        return
    yield from _schedule(speculation)
    if speculation.num_speculative_tokens_per_batch_size is not None and speculation.policy != "fixed":
        rule = "a schedule and a policy both choose the draft length"
        yield Finding("speculation.policy", f"is {speculation.policy} beside a schedule", rule, "keep one of them")
    yield from _lookup(speculation)


def _schedule(speculation: Speculation) -> Iterator[Finding]:
    """vLLM's own rules: ranges of requests in order, from 1, without overlap; lengths up to num_speculative_tokens."""
    ranges = speculation.num_speculative_tokens_per_batch_size or []
    most = speculation.num_speculative_tokens
    last = 0
    for place, (first, end, drafts) in enumerate(ranges):
        path = f"{_SCHEDULE}.{place}"
        if place == 0 and first != 1:
            yield Finding(f"{path}.0", f"the first range starts at {first}", "it starts at 1 request", "start it at 1")
        elif first <= last:
            rule = "ranges are sorted and do not overlap"
            yield Finding(
                f"{path}.0", f"starts at {first}, the one before ends at {last}", rule, f"start at {last + 1}"
            )
        if end < first:
            yield Finding(f"{path}.1", f"ends at {end} before it starts at {first}", "first <= last", "exchange them")
        if drafts > most:
            rule = f"at most num_speculative_tokens, {most}"
            yield Finding(f"{path}.2", f"{drafts} draft tokens", rule, "lower it or raise num_speculative_tokens")
        last = max(last, end)


def _lookup(speculation: Speculation) -> Iterator[Finding]:
    given = [key for key in ("prompt_lookup_min", "prompt_lookup_max") if getattr(speculation, key) is not None]
    if given and speculation.method not in LOOKUP_METHODS:
        rule = f"method {speculation.method} looks nothing up"
        yield Finding(f"speculation.{given[0]}", "is given", rule, "remove it or use method ngram")
    shortest, longest = speculation.prompt_lookup_min, speculation.prompt_lookup_max
    if shortest is not None and longest is not None and shortest > longest:
        what = f"{shortest} is above prompt_lookup_max {longest}"
        yield Finding("speculation.prompt_lookup_min", what, "min <= max", "exchange them")
