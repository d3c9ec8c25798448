"""Rules across the keys of trace arrivals: format and columns, rate and recorded times, the window."""

from __future__ import annotations

from collections.abc import Iterator

from .parts import Parts
from .scenario import TraceArrivals, TraceColumnMap
from .source import Finding

_AT = "workload.arrivals"
_OWN_COLUMNS = ("azure", "vidur", "mooncake")  # formats that say what their columns are called


def trace_findings(parts: Parts) -> Iterator[Finding]:
    """Everything about a trace that one key alone does not show; the file itself is not looked at."""
    arrivals = parts.arrivals
    if not isinstance(arrivals, TraceArrivals):
        return
    window = arrivals.window_s
    if window and window[0] >= window[1]:
        what = f"from {window[0]:g} to {window[1]:g} holds nothing"
        yield Finding(f"{_AT}.window_s", what, "a window is [from, to)", "give the smaller time first")
    if arrivals.rate is not None and arrivals.scale != 1:
        rule = "scale changes recorded times, and rate replaces them"
        yield Finding(f"{_AT}.scale", "is given beside rate", rule, "remove one of them")
    if arrivals.columns is None and arrivals.format in ("csv", "jsonl"):
        rule, remedy = (
            f"format {arrivals.format} says nothing of them",
            "add `columns: {arrival: …, prompt_tokens: …, …}`",
        )
        yield Finding(f"{_AT}.columns", "is missing", rule, remedy)
    elif arrivals.columns is not None and arrivals.format in _OWN_COLUMNS:
        rule = f"format {arrivals.format} has columns of its own"
        yield Finding(f"{_AT}.columns", "is given beside it", rule, "remove it, or set format to csv, jsonl or auto")
    elif arrivals.columns is not None:
        yield from _columns(arrivals.columns)


def _columns(columns: TraceColumnMap) -> Iterator[Finding]:
    at = f"{_AT}.columns"
    if columns.arrival_unit is not None and columns.arrival is None:
        rule = "it is the unit of arrival"
        yield Finding(f"{at}.arrival_unit", "is given without arrival", rule, "add `arrival: …` or remove it")
    if (columns.hash_ids is None) != (columns.hash_block_tokens is None):
        given, missing = ("hash_ids", "hash_block_tokens")[:: 1 if columns.hash_ids else -1]
        rule = "block hashes need a list of ids and the tokens of a block"
        yield Finding(f"{at}.{given}", f"is given without {missing}", rule, f"add `{missing}: …` or remove it")
    first: dict[str, str] = {}
    for key in ("arrival", "prompt_tokens", "output_tokens", "hash_ids"):
        name = getattr(columns, key)
        if name is not None and first.setdefault(name, key) != key:
            what = f"{name!r} is the column of {first[name]} already"
            yield Finding(f"{at}.{key}", what, "each column holds one thing", "name another column")
