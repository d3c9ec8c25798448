"""Why a recommendation is what it is, in sentences: what was compared, by how much, and what eats a schedule's gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..analysis.choice import RatioRow
from ..analysis.draft_schedule import LEAST_GAIN
from ..inputs.wording import counted
from .tune_arms import GOODPUT, OFF, SCHEDULE, fixed_name
from .tune_traffic import THROUGHPUT, Traffic

OBJECTIVES = {"output_throughput": "output throughput", "mean_e2el_ms": "mean E2E latency"}


def ratio_text(row: RatioRow) -> str:
    """`1.23x [1.20, 1.26]`."""
    if row["ratio"] is None:
        return "not known"
    bounds = "" if row["low"] is None or row["high"] is None else f" [{row['low']:.3g}, {row['high']:.3g}]"
    return f"{row['ratio']:.4g}x{bounds}"


def fixed_reasons(traffic: Traffic, drafts: int, most_drafts: int, losers: Sequence[str]) -> list[str]:
    """How the fixed lengths compare on the scenario's traffic."""
    measure = OBJECTIVES[traffic.objective]
    names = [fixed_name(one) for one in range(most_drafts + 1)]
    best = traffic.best(names[1:])
    overloaded = [name for name in traffic.by_arm if name not in traffic.judged]
    reasons = []
    if overloaded:
        reasons.append(f"overloaded on this traffic, and not judged: {', '.join(overloaded)}")
    if drafts:
        found = ratio_text(traffic.ratio(fixed_name(drafts), OFF))
        reasons.append(
            f"a draft length of {drafts} gives {found} the {measure} of no speculation on the scenario's traffic"
        )
    elif best.key in traffic.judged and best.key != OFF:
        found = ratio_text(traffic.ratio(best.key, OFF))
        reasons.append(f"no length is shown to beat no speculation: the best, {best.key}, gives {found} its {measure}")
    tied = [name for name in traffic.best(names).ties if name in names]
    if tied:
        reasons.append(f"within noise of the best fixed length: {', '.join(map(str, tied))}")
    if drafts == most_drafts:
        reasons.append(f"{most_drafts} is the longest draft that was tried: a longer one may do better")
    if losers:
        reasons.append(f"slices that lose by a draft length of {drafts}: {', '.join(losers)}")
    if GOODPUT in traffic.judged and drafts:
        found = ratio_text(traffic.ratio(GOODPUT, fixed_name(drafts)))
        reasons.append(f"a goodput policy, which no engine here has, would give {found} the {measure} of that length")
    return reasons


def schedule_losses(mix: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Loads at which the engine's rule makes a schedule slower than the best fixed length there, and why.

    reached 0: the drafter stays loaded and its first pass is still paid. other length: steps whose requests, prompts
    included, fall into another range than the load's, or a length that is best here but was worth no range.
    """
    losses = []
    for part in mix["by_concurrency"]:
        row = part["schedule"]["ratio_to_best"]
        if row["verdict"] == "worse" and row["ratio"] < 1 - LEAST_GAIN:
            at_zero = _length_at(mix["schedule"]["ranges"], part["concurrency"]) == 0
            cause = "reached 0" if at_zero else "other length"
            losses.append({"concurrency": part["concurrency"], "cause": cause, **row})
    return losses


def _length_at(ranges: Sequence[Sequence[int]], requests: int) -> int:
    return next(drafts for first, last, drafts in reversed(ranges) if first <= requests)


def schedule_reasons(
    traffic: Traffic,
    ranges: Sequence[Sequence[int]],
    drafts: int,
    losses: Sequence[Mapping[str, Any]],
    wins: bool,
    losers: Sequence[str],
) -> list[str]:
    """Why the schedule is recommended or not."""
    reasons = []
    measure, fixed = OBJECTIVES[traffic.objective], fixed_name(drafts)
    if SCHEDULE not in traffic.by_arm:
        reasons.append("one length is good enough at every load: a schedule would have one range")
    elif SCHEDULE not in traffic.judged:
        reasons.append("the schedule is overloaded on the scenario's traffic")
    else:
        against = f"the fixed {drafts}" if drafts else "no speculation"
        found = ratio_text(traffic.ratio(SCHEDULE, fixed))
        verdict = "" if wins else ", which is not shown to be a gain worth a schedule"
        reasons.append(f"on the scenario's traffic it gives {found} the {measure} of {against}{verdict}")
    at_zero = [one["concurrency"] for one in losses if one["cause"] == "reached 0"]
    if at_zero:
        reasons.append(
            f"with {_listed(at_zero)} users it reaches 0, and the loaded drafter eats the gain: its memory and "
            "lookahead slots stay, and its first pass is paid in every step"
        )
    others = [one["concurrency"] for one in losses if one["cause"] != "reached 0"]
    if others:
        reasons.append(
            f"with {_listed(others)} users it is slower than the best fixed length: the engine chooses by all "
            "scheduled requests, prompts included"
        )
    if len(ranges) > 1:
        reasons.append(
            "vLLM's older runner leaves FULL CUDA graphs wherever a schedule is given, and ignores it under data "
            "parallelism; the newer one captures graphs for every length: check which one you run"
        )
    return reasons


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def pools_reasons(pools: Mapping[str, Any], losers: Sequence[str], drafts: int) -> list[str]:
    """What pools do for the slices that lose."""
    total = pools["replicas"]
    named = "; ".join(
        f"{counted(pool['replicas'], 'replica')} with {counted(pool['num_speculative_tokens'], 'draft')} for "
        f"{', '.join(pool['slices'])}"
        for pool in pools["pools"]
    )
    measure = OBJECTIVES[pools["traffic"]["objective"]]
    reasons = [
        f"pools ({named}) give {ratio_text(pools['ratio_to_shared'])} the {measure} of {total} shared replicas with "
        f"{counted(drafts, 'draft')}"
    ]
    if pools["traffic_factor"] != 1:
        reasons.append(
            f"each pool needs a replica: compared on {total}, with {pools['traffic_factor']:g} times the traffic"
        )
    if pools["losing_slices"]:
        reasons.append(f"in pools these still lose against no speculation: {', '.join(pools['losing_slices'])}")
    elif pools["recommended"]:
        reasons.append(f"in pools no slice loses: {', '.join(losers)} no longer")
    else:
        worse = "slower" if pools["traffic"]["objective"] != THROUGHPUT else "less throughput"
        reasons.append(f"in pools no slice loses, but all together they are {worse}: the price of mending it")
    return reasons
