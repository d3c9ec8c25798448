"""Rules across the keys of `workload`: shares, names, lengths against a trace, distributions, sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .numbers import MAX_TOKENS
from .parts import Parts
from .scenario import Empirical, Gamma, Geometric, Length, Lognormal, Poisson, Slice, TraceArrivals, Uniform
from .source import Finding

MAX_OUTPUT_TOKENS = 4_000_000_000  # of a replication: acceptance takes a byte for each
MAX_DURATION_S = 1e8
SHARE_TOLERANCE = 1e-6
Z90 = 1.2815515655446004  # the 90th percentile of the standard normal distribution
MAX_P90_OVER_MEDIAN = 1000.0


def workload_findings(parts: Parts) -> Iterator[Finding]:
    """Everything about the workload that one key alone does not show."""
    yield from _shares(parts)
    yield from _names(parts)
    yield from _requests(parts)
    yield from _window(parts)
    for place, part in parts.slices.items():
        path = f"workload.slices.{place}"
        yield from _lengths_and_trace(path, part, parts.kind)
        for key in ("prompt_tokens", "output_tokens"):
            yield from _distribution(f"{path}.{key}", getattr(part, key))
        if isinstance(part.prompt_tokens, int) and part.prefix_hit_tokens > part.prompt_tokens:
            what = f"{part.prefix_hit_tokens} tokens of a prompt of {part.prompt_tokens}"
            remedy = f"give at most {part.prompt_tokens}"
            yield Finding(f"{path}.prefix_hit_tokens", what, "a hit is a part of the prompt", remedy)
    yield from _size(parts)


def _shares(parts: Parts) -> Iterator[Finding]:
    total = math.fsum(part.share for part in parts.slices.values())
    if parts.all_slices and abs(total - 1) > SHARE_TOLERANCE:
        remedy = "leave share out" if len(parts.slices) == 1 else "change the shares so that they add up to 1"
        at = "workload.slices.0.share"
        yield Finding(at, f"the shares of the slices add up to {total:.6g}", "they must add up to 1", remedy)


def _names(parts: Parts) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for place, part in parts.slices.items():
        if first.setdefault(part.name, place) != place:
            what = f"{part.name!r} is the name of slice {first[part.name]} already"
            yield Finding(f"workload.slices.{place}.name", what, "names are unique", "rename one of them")


def _requests(parts: Parts) -> Iterator[Finding]:
    if parts.kind not in (None, "trace") and not parts.requests_given:
        rule = f"{parts.kind} arrivals have no end of their own"
        yield Finding("workload.requests", "is missing", rule, "add `requests: …`")


def _window(parts: Parts) -> Iterator[Finding]:
    window = parts.arrivals.window_s if isinstance(parts.arrivals, TraceArrivals) else None
    if window and window[0] >= window[1]:
        what = f"from {window[0]:g} to {window[1]:g} holds nothing"
        yield Finding("workload.arrivals.window_s", what, "a window is [from, to)", "give the smaller time first")


def _lengths_and_trace(path: str, part: Slice, kind: str | None) -> Iterator[Finding]:
    for key in ("prompt_tokens", "output_tokens"):
        given = getattr(part, key) is not None
        if kind == "trace" and given:
            yield Finding(f"{path}.{key}", "is given beside a trace", "a trace brings the lengths", "remove it")
        elif kind not in (None, "trace") and not given:
            rule = f"{kind} arrivals bring no lengths"
            yield Finding(f"{path}.{key}", "is missing", rule, f"add `{key}: …`")


def _distribution(path: str, length: Length | None) -> Iterator[Finding]:
    if isinstance(length, Uniform) and length.low > length.high:
        what = f"low {length.low} is above high {length.high}"
        yield Finding(f"{path}.low", what, "low <= high", "exchange them")
    if isinstance(length, Lognormal):
        if length.p90 < length.median:
            what = f"p90 {length.p90:g} is below median {length.median:g}"
            yield Finding(f"{path}.p90", what, "p90 >= median", "exchange them")
        elif length.p90 > MAX_P90_OVER_MEDIAN * length.median:
            what = f"p90 is {length.p90 / length.median:g} times the median"
            rule = f"at most {MAX_P90_OVER_MEDIAN:g} times"
            yield Finding(f"{path}.p90", what, rule, "check both numbers")


def _mean(length: Length | None) -> float:
    """Expected tokens, 1 where only a file knows."""
    if length is None or isinstance(length, Empirical):
        return 1.0
    if isinstance(length, int):
        return float(length)
    if isinstance(length, Uniform):
        return (length.low + length.high) / 2
    limit = length.max or MAX_TOKENS
    if isinstance(length, Geometric):
        return min(length.mean, limit)
    sigma = math.log(max(1.0, length.p90 / length.median)) / Z90
    return min(length.median * math.exp(min(sigma * sigma / 2, 100.0)), limit)


def _size(parts: Parts) -> Iterator[Finding]:
    """A run that no machine could hold, or whose clock would run out of digits."""
    if parts.requests is None:
        return
    mean = math.fsum(part.share * _mean(part.output_tokens) for part in parts.slices.values())
    if parts.all_slices and parts.requests * mean > MAX_OUTPUT_TOKENS:
        what = f"about {parts.requests * mean:.3g} output tokens"
        rule = f"a replication holds at most {MAX_OUTPUT_TOKENS:.0e}"
        yield Finding("workload.requests", what, rule, "ask for fewer requests or shorter outputs")
    rate = parts.arrivals.rate if isinstance(parts.arrivals, Poisson | Gamma) else None
    if rate is not None and parts.requests / rate > MAX_DURATION_S:
        what = f"{parts.requests} requests at {rate:g} per second take {parts.requests / rate:.3g} s"
        yield Finding("workload.arrivals.rate", what, f"at most {MAX_DURATION_S:.0e} s", "give a higher rate")
