"""Why an arm breaks its SLO just above its capacity: a queue for batch slots, KV blocks, the length of its steps."""

from __future__ import annotations

from typing import Any

from .loads import AtLoad, Judged
from .plan import ArmPlan

FULL = 0.9  # of the KV blocks: the rest is what admission leaves free
MOST_PREEMPTED = 0.01  # preemptions per completed request that are more than accidents
CAUSES = {
    "queue": "requests wait for a batch slot",
    "kv": "KV blocks run out",
    "tpot": "steps get longer with the batch",
    "prefill": "prompts wait for their turn in the steps",
}


def breaking_point(arm: ArmPlan, broken: AtLoad, light: AtLoad) -> dict[str, Any] | None:
    """The limit that is missed by most, and the cause; None where nothing is missed. light: a load that is carried.

    cause: `queue`, `kv`, `tpot` or `prefill`, as in `CAUSES`.
    """
    missed = [one for one in broken.judged if one.value is not None and one.value > one.limit.limit_ms]
    if not missed and not broken.overload.detected:
        return None
    worst = max(missed, key=_excess) if missed else None
    cause = _cause(arm, worst, broken.result, light.result)
    text = CAUSES[cause]
    if broken.overload.detected:
        text = f"overload, the queue grows without end: {text}"
    return {
        "load": broken.load,
        "metric": worst.limit.metric if worst else None,
        "limit_ms": worst.limit.limit_ms if worst else None,
        "value_ms": worst.value if worst else None,
        "overloaded": broken.overload.detected,
        "cause": cause,
        "text": text,
    }


def _excess(one: Judged) -> float:
    return (one.value or 0.0) / one.limit.limit_ms


def _cause(arm: ArmPlan, worst: Judged | None, at: dict[str, Any], light: dict[str, Any]) -> str:
    slots = sum(pool.settings.max_num_seqs * pool.settings.replicas for pool in arm.pools)
    full = (at["kv_utilisation"] or 0.0) > FULL or at["preemptions"] > MOST_PREEMPTED * at["completed"]
    if worst is not None and worst.limit.latency == "tpot":
        return "kv" if full and at["max_running"] < slots else "tpot"
    waits = _grown(at, light, "mean_queue_ms")
    steps = _grown(at, light, "mean_decode_ms") if worst is None or worst.limit.latency == "e2el" else 0.0
    prefill = _grown(at, light, "mean_ttft_ms") - waits
    if waits >= max(steps, prefill):
        return "kv" if full and at["max_running"] < slots else "queue"
    return "tpot" if steps >= prefill else "prefill"


def _grown(at: dict[str, Any], light: dict[str, Any], metric: str) -> float:
    return (at[metric] or 0.0) - (light[metric] or 0.0)
