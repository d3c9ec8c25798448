"""What speculation does to each slice: who gains, who loses, by how much. A pure function of the result document."""

from __future__ import annotations

from typing import Any, Literal

from .changes import E2E, TPOT, Change, changes

MOST_NAMED = 3  # slices in the answer's sentence; the tables have the others

Effect = Literal["gains", "loses", "is a trade", "same"]


def slice_names(document: dict[str, Any]) -> list[str]:
    """The slices that have results of their own, those with most requests first; none where there is only one slice."""
    slices = document["arms"]["baseline"].get("slices", {})
    return sorted(slices, key=lambda name: -(slices[name]["request_share"] or 0.0))


def slice_changes(document: dict[str, Any], arm: str, name: str) -> dict[str, Change]:
    """The headline metrics of one slice, from the baseline to an arm."""
    own = {one: document["arms"][one]["slices"][name] for one in ("baseline", arm)}
    return changes({"arms": own, "comparison": {arm: document["comparison"][arm]["slices"][name]}}, arm)


def slice_effect(found: dict[str, Change]) -> tuple[Effect, Change | None]:
    """What a change of the engine does to a slice by TPOT and E2E latency, and the change that shows it."""
    judged = [found[item.metric] for item in (TPOT, E2E) if item.metric in found]
    better = [change for change in judged if change.direction > 0]
    worse = [change for change in judged if change.direction < 0]
    if better and worse:
        return "is a trade", worse[0]
    if worse or better:
        return ("loses", worse[0]) if worse else ("gains", better[0])
    return "same", None


def slices_sentence(document: dict[str, Any]) -> str:
    """Slices that go against the others: the losing ones, and the gaining ones where the rest loses; else nothing."""
    told: dict[str, list[tuple[str, Change]]] = {"loses": [], "gains": []}
    names = slice_names(document)
    for name in names:
        effect, change = slice_effect(slice_changes(document, "speculative", name))
        if change is not None and effect in told:
            told[effect].append((name, change))
    if not told["loses"] or len(told["loses"]) == len(names):
        return ""  # nobody loses, or all do, which the answer has said
    return " ".join(_named(effect, told[effect]) for effect in ("loses", "gains") if told[effect])


def _named(effect: str, told: list[tuple[str, Change]]) -> str:
    if len(told) == 1:
        (name, change), *_ = told
        return f"Slice {name} {effect} from speculation: {change}."
    listed = [f"{name}, {change}" for name, change in told[:MOST_NAMED]]
    if len(told) > MOST_NAMED:
        listed.append(f"and {len(told) - MOST_NAMED} more")
    return f"Slices that {effect.removesuffix('s')} from speculation: {'; '.join(listed)}."
