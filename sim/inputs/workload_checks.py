"""Rules across the keys of `workload`: shares, names, lengths against a trace, distributions, sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .acceptance_models import Replay
from .numbers import MAX_DURATION_S, MAX_REQUESTS, MAX_TOKENS
from .parts import Parts
from .scenario import Empirical, Gamma, Geometric, Length, Lognormal, Poisson, Slice, Uniform
from .source import Finding
from .trace_checks import trace_findings

MAX_OUTPUT_TOKENS = 4_000_000_000  # of a replication: acceptance takes a byte for each
SHARE_TOLERANCE = 1e-6
Z90 = 1.2815515655446004  # the 90th percentile of the standard normal distribution
MAX_P90_OVER_MEDIAN = 1000.0


def workload_findings(parts: Parts) -> Iterator[Finding]:
    """Everything about the workload that one key alone does not show."""
    yield from _shares(parts)
    yield from _names(parts)
    yield from _requests(parts)
    yield from trace_findings(parts)
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
    """How much is sent: exactly one of `requests` and `duration_s`, a trace may have neither."""
    if parts.requests_given and parts.duration_given:
        what, remedy = "is given beside requests", "remove one of them"
        yield Finding("workload.duration_s", what, "one of them says when the workload ends", remedy)
    elif parts.kind == "at_once" and parts.duration_given:
        rule = "at_once arrivals all come at time 0"
        yield Finding("workload.duration_s", "says nothing here", rule, "give `requests` instead")
    elif parts.kind not in (None, "trace") and not (parts.requests_given or parts.duration_given):
        remedy = "add `requests: …`" if parts.kind == "at_once" else "add `requests: …` or `duration_s: …`"
        yield Finding("workload.requests", "is missing", f"{parts.kind} arrivals have no end of their own", remedy)


def _lengths_and_trace(path: str, part: Slice, kind: str | None) -> Iterator[Finding]:
    for key in ("prompt_tokens", "output_tokens"):
        given = getattr(part, key) is not None
        if kind == "trace" and given:
            yield Finding(f"{path}.{key}", "is given beside a trace", "a trace brings the lengths", "remove it")
        elif kind not in (None, "trace") and not given:
            if key == "output_tokens" and isinstance(part.acceptance, Replay):
                continue  # the log brings them
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
    rate = parts.arrivals.rate if isinstance(parts.arrivals, Poisson | Gamma) else None
    requests = parts.requests
    if requests is None and rate is not None and parts.duration_s is not None:
        requests = math.ceil(min(rate * parts.duration_s, 1e300))
        if requests > MAX_REQUESTS:
            what = f"about {requests:.3g} requests arrive in that time"
            yield Finding("workload.duration_s", what, f"at most {MAX_REQUESTS}", "give a shorter time or a lower rate")
            return
    if requests is None:
        return
    field = "workload.requests" if parts.requests_given else "workload.duration_s"
    mean = math.fsum(part.share * _mean(part.output_tokens) for part in parts.slices.values())
    if parts.all_slices and requests * mean > MAX_OUTPUT_TOKENS:
        what = f"about {requests * mean:.3g} output tokens"
        rule = f"a replication holds at most {MAX_OUTPUT_TOKENS:.0e}"
        yield Finding(field, what, rule, "ask for fewer requests or shorter outputs")
    if rate is not None and requests / rate > MAX_DURATION_S:
        what = f"{requests} requests at {rate:g} per second take {requests / rate:.3g} s"
        yield Finding("workload.arrivals.rate", what, f"at most {MAX_DURATION_S:.0e} s", "give a higher rate")
