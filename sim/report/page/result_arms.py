"""What figures show of a result's arms: an arm as a whole or one of its slices, values with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..changes import metric_value
from ..slice_answer import slice_names

Arm = dict[str, Any]
MOST_SLICES = 12  # figures of a page; the result has all
WHOLE = "whole workload"
LINES = ("solid", "dash", "dot", "dashdot", "longdash")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
COLOURS = 8


def scopes(document: dict[str, Any]) -> list[str | None]:
    """None for the whole workload, then the slices with most requests, where there are several."""
    return [None, *slice_names(document)[:MOST_SLICES]]


def scope_labels(document: dict[str, Any]) -> list[str]:
    """What a reader picks among."""
    return [WHOLE if name is None else name for name in scopes(document)]


def part_of(arm: Arm, scope: str | None) -> Arm:
    """An arm's numbers, of one slice or the whole workload."""
    part: Arm = arm if scope is None else arm["slices"][scope]
    return part


def compared_part(comparison: dict[str, Any], scope: str | None) -> dict[str, Any]:
    """An arm's comparison with the baseline, of one slice or the whole workload."""
    part: dict[str, Any] = comparison if scope is None else comparison["slices"][scope]
    return part


def value_of(part: Arm, metric: str) -> float | None:
    """A metric, costs included; None where it is not known."""
    return metric_value(part, metric) if metric in part or part.get("cost") else None


def interval_of(part: Arm, metric: str) -> Sequence[float] | None:
    """The 95 % interval of a metric; None where there is none."""
    found: Sequence[float] | None = (part.get("ci") or {}).get(metric)
    return found


def colour(arm: int) -> str:
    """The colour of an arm by its place; the baseline is grey."""
    return "@baseline" if arm == 0 else f"@c{(arm - 1) % COLOURS}"
