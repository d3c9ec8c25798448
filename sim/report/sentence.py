"""The answer in one sentence: does speculation pay, by what, and why. A pure function of the result document."""

from __future__ import annotations

from typing import Any

from .changes import COST, E2E, OUTPUT_THROUGHPUT, TPOT, TTFT, Change, changes
from .number_text import number_text
from .reason import burden_reason, main_burden, memory_reason, round_reason, ttft_reason
from .slice_answer import slices_sentence


def answer_sentence(document: dict[str, Any]) -> str:
    """The answer; losing slices, overload and the best of several arms follow as sentences of their own."""
    arms = document["arms"]
    sentences = [_comparison(document) if "speculative" in arms else _baseline_alone(arms["baseline"])]
    if "speculative" in arms:
        sentences.append(slices_sentence(document))
    sentences += [_overload(document), _best_of(arms)]
    return " ".join(sentence for sentence in sentences if sentence)


def _baseline_alone(arm: dict[str, Any]) -> str:
    if not arm["completed"]:
        return "No request completed."
    parts = [f"{number_text(arm['output_throughput'])} output tok/s"]
    if arm["mean_tpot_ms"] is not None:
        parts.append(f"TPOT {number_text(arm['mean_tpot_ms'])} ms")
    if arm["mean_ttft_ms"] is not None:
        parts.append(f"TTFT {number_text(arm['mean_ttft_ms'])} ms")
    return f"Without speculation: {', '.join(parts)}, with {number_text(arm['mean_running'])} requests running."


def _comparison(document: dict[str, Any]) -> str:
    baseline, arm = document["arms"]["baseline"], document["arms"]["speculative"]
    for name in ("baseline", "speculative"):
        if not document["arms"][name]["completed"]:
            return f"No answer: no request completed in arm {name}."
    if arm["spec_decode_num_drafts"] is None:
        return "No speculation is configured: both arms are the same."
    found = changes(document, "speculative")
    judged = [found[item.metric] for item in (TPOT, OUTPUT_THROUGHPUT, E2E, COST) if item.metric in found]
    if not judged:
        return "No answer: the arms have no latency or throughput to compare."
    burden = main_burden(baseline, arm)
    verdict = _verdict(judged, burden)
    longer_ttft = TTFT.metric in found and found[TTFT.metric].direction < 0
    reasons = _reasons(verdict, burden, longer_ttft, baseline, arm)
    because = f", because {'; '.join(reasons)}" if reasons else ""
    told, aside = _told(verdict, found)
    return f"Speculation {verdict}: {told}{because}{aside}{_untested(judged, document)}."


def _verdict(judged: list[Change], burden: str) -> str:
    better = any(change.direction > 0 for change in judged)
    worse = any(change.direction < 0 for change in judged)
    if better:
        return "is a trade" if worse else "pays"
    return "loses" if worse and burden == "verification" else "does not pay"


def _told(verdict: str, found: dict[str, Change]) -> tuple[str, str]:
    """What the reason explains, and what goes the other way and stands after it.

    E2E latency speaks only where no other metric tells its direction.
    """
    shown = [found[item.metric] for item in (TPOT, OUTPUT_THROUGHPUT, TTFT, COST) if item.metric in found]
    end_to_end = found.get(E2E.metric)
    if end_to_end and all(change.direction != end_to_end.direction for change in shown):
        shown.append(end_to_end)
    gains = [str(change) for change in shown if change.direction > 0]
    losses = [str(change) for change in shown if change.direction < 0]
    same = [str(change) for change in shown[:2] if change.direction == 0]
    if verdict == "is a trade":
        return f"{', '.join(gains + same)}, but {_and(losses)}", ""
    told, against = (gains, losses) if verdict == "pays" else (losses, gains)
    return ", ".join(told + same), f"; against that, {_and(against)}" if against else ""


def _reasons(verdict: str, burden: str, longer_ttft: bool, baseline: dict[str, Any], arm: dict[str, Any]) -> list[str]:
    memory = memory_reason(baseline, arm)
    if verdict == "is a trade":
        ttft = ttft_reason(baseline, arm) if longer_ttft else None
        reasons = [memory or ttft or round_reason(baseline, arm)]
    elif verdict == "pays":
        drafts = arm["time_share"]["drafting"] > 0  # a calibration of whole rounds does not tell drafting apart
        reasons = [round_reason(baseline, arm), burden_reason("drafting", baseline, arm) if drafts else None]
    else:
        reasons = [round_reason(baseline, arm), burden_reason(burden, baseline, arm), memory]
    return [reason for reason in reasons if reason]


def _untested(judged: list[Change], document: dict[str, Any]) -> str:
    if any(change.tested for change in judged):
        return ""
    replications = document["scenario"].get("run", {}).get("replications", 1)
    return " (one replication: not tested)" if replications == 1 else " (not tested)"


def _overload(document: dict[str, Any]) -> str:
    """Which arms cannot carry the offered load, and what each carries."""
    arms = document["arms"]
    over = [name for name, arm in arms.items() if arm["overload"]["detected"]]
    if not over:
        return ""
    carried = []
    for name, arm in arms.items():
        rate = arm["overload"]["carried_request_rate"]
        if name not in over:
            carried.append(f"{name} keeps up")
        elif rate is None:
            carried.append(f"what {name} carries is unknown")
        else:
            carried.append(f"{name} carries {number_text(rate)} requests/s")
    offered = document["scenario"]["workload"]["arrivals"].get("rate")
    of_offered = f" of {number_text(offered)} requests/s" if offered else ""
    where = "every arm" if len(over) == len(arms) else _and(over)
    return f"Overload in {where}, the queue of arrivals{of_offered} grows without end: {', '.join(carried)}."


def _best_of(arms: dict[str, Any]) -> str:
    """The best arm by TPOT and by output throughput, where there are more than two."""
    if len(arms) < 3:
        return ""
    tpot = {name: arm["mean_tpot_ms"] for name, arm in arms.items() if arm["mean_tpot_ms"] is not None}
    throughput = {name: arm["output_throughput"] for name, arm in arms.items() if arm["output_throughput"] is not None}
    best = []
    if tpot:
        name = min(tpot, key=lambda arm: tpot[arm])
        best.append(f"lowest TPOT in {name} ({number_text(tpot[name])} ms)")
    if throughput:
        name = max(throughput, key=lambda arm: throughput[arm])
        best.append(f"highest output throughput in {name} ({number_text(throughput[name])} tok/s)")
    return f"Of {len(arms)} arms: {', '.join(best)}." if best else ""


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
