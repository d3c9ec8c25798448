"""What to set: from the arms on the scenario's own traffic to one recommendation, with flags for the engines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..analysis.draft_schedule import LEAST_GAIN
from ..engine.settings import EngineSettings
from ..formats.engine_flags import fixed_flags, schedule_flags
from ..inputs.load import LoadedScenario
from ..inputs.scenario import Closed
from ..inputs.wording import counted
from .closed_load import Scope
from .executors import Mapped
from .load_store import LoadStore, Progress
from .tune_arms import OFF, SCHEDULE, fixed_name
from .tune_reasons import fixed_reasons, pools_reasons, schedule_losses, schedule_reasons
from .tune_slices import JUDGED, POOLS, PoolChoice, chosen_pools, losing_slices, pool_list, pools_traffic, slice_rows
from .tune_traffic import THROUGHPUT, Traffic


def advice(
    loaded: LoadedScenario,
    store: LoadStore,
    scopes: Sequence[Scope],
    mix: Mapping[str, Any],
    traffic: Traffic,
    limits: EngineSettings,
    most_drafts: int,
    replications: int,
    mapped: Mapped,
    progress: Progress,
) -> dict[str, Any]:
    """The parts of a result about the scenario's own traffic: arms, slices, pools, recommendation, flags."""
    own = traffic.document()
    drafts = best_fixed(traffic, most_drafts)
    fixed = fixed_name(drafts)
    replicas = shared_replicas(traffic)
    slices = slice_rows(own, [fixed], replicas) if drafts else {}
    losers = losing_slices(slices, fixed) if drafts else []
    schedule_wins = SCHEDULE in traffic.by_arm and _gains(traffic, SCHEDULE, fixed)
    losses = schedule_losses(mix)
    recommendation: dict[str, Any] = {
        "kind": "schedule" if schedule_wins else "fixed" if drafts else "off",
        "num_speculative_tokens": mix["schedule"]["num_speculative_tokens"] if schedule_wins else drafts,
        "schedule": mix["schedule"]["ranges"] if schedule_wins else None,
        "pools": None,
        "ratio_to_off": traffic.ratio(SCHEDULE if schedule_wins else fixed, OFF),
        "why": fixed_reasons(traffic, drafts, most_drafts, losers),
    }
    pools = None
    if losers and len(losers) < len(slices):
        choice = _choice(loaded, store, scopes, mix, own, losers, drafts, most_drafts, replicas)
        pools = _pools(loaded, choice, losers, drafts, replicas, replications, mapped, progress)
        recommendation["why"] += pools_reasons(pools, losers, drafts)
        if pools["recommended"]:
            recommendation |= {
                "kind": "pools",
                "pools": pools["pools"],
                "schedule": None,
                "num_speculative_tokens": max(pool.drafts for pool in choice),
                "ratio_to_off": pools["traffic"]["ratio_to_off"][POOLS],
            }
    schedule = {
        "ranges": mix["schedule"]["ranges"],
        "recommended": recommendation["kind"] == "schedule",
        "ratio_to_best_fixed": traffic.ratio(SCHEDULE, fixed) if SCHEDULE in traffic.by_arm else None,
        "losses": losses,
        "reasons": schedule_reasons(traffic, mix["schedule"]["ranges"], drafts, losses, schedule_wins, losers),
    }
    return {
        "own_traffic": {"best_fixed": drafts, "ties": _ties(traffic, most_drafts), **own},
        "slices": slices,
        "losing_slices": losers,
        "pools": pools,
        "schedule": schedule,
        "recommendation": recommendation,
        "flags": _flags(loaded, recommendation, mix["schedule"]["ranges"], limits.max_num_seqs),
    }


def best_fixed(traffic: Traffic, most_drafts: int) -> int:
    """The best fixed length, the shortest of those that cannot be told apart and lose less than 1 %; 0 where no length
    was shown to be better than none."""
    names = [fixed_name(drafts) for drafts in range(most_drafts + 1)]
    best = traffic.best(names)
    close = [
        name
        for name in names
        if name == best.key or (name in best.ties and _behind(traffic, name, best.key) < LEAST_GAIN)
    ]
    chosen = names.index(close[0])
    if chosen and OFF in traffic.judged and traffic.ratio(names[chosen], OFF)["verdict"] != "better":
        return 0
    return chosen


def _ties(traffic: Traffic, most_drafts: int) -> list[int]:
    names = [fixed_name(drafts) for drafts in range(most_drafts + 1)]
    best = traffic.best(names)
    return [drafts for drafts, name in enumerate(names) if name == best.key or name in best.ties]


def _behind(traffic: Traffic, arm: str, reference: Any) -> float:
    """By how much of the reference's value an arm is worse."""
    ratio = traffic.ratio(arm, reference)["ratio"]
    if ratio is None:
        return 0.0
    return 1 - ratio if traffic.objective == THROUGHPUT else ratio - 1


def _gains(traffic: Traffic, arm: str, reference: str) -> bool:
    """Whether an arm is shown to be better, by more than decides nothing."""
    return (
        arm in traffic.judged
        and traffic.ratio(arm, reference)["verdict"] == "better"
        and -_behind(traffic, arm, reference) >= LEAST_GAIN
    )


def shared_replicas(traffic: Traffic) -> int:
    """Replicas of the shared engine."""
    return traffic.plan.arms[0].settings.replicas


def _users_a_replica(loaded: LoadedScenario, own: Mapping[str, Any], arm: str, replicas: int) -> float:
    arrivals = loaded.scenario.workload.arrivals
    users = arrivals.concurrency if isinstance(arrivals, Closed) else own["arms"][arm]["mean_running"]
    return max(1.0, float(users) / replicas)


def _choice(
    loaded: LoadedScenario,
    store: LoadStore,
    scopes: Sequence[Scope],
    mix: Mapping[str, Any],
    own: Mapping[str, Any],
    losers: Sequence[str],
    drafts: int,
    most_drafts: int,
    replicas: int,
) -> list[PoolChoice]:
    """Pools by what the closed loads show at the concurrency that a replica has on the scenario's traffic."""
    fixed = fixed_name(drafts)
    load = _nearest(
        _users_a_replica(loaded, own, fixed, replicas), [one["concurrency"] for one in mix["by_concurrency"]]
    )
    tokens = {name: part["total_output_tokens"] for name, part in own["arms"][fixed]["slices"].items()}
    return chosen_pools(store, scopes, losers, load, most_drafts, replicas, tokens)


def _nearest(users: float, ladder: Sequence[int]) -> int:
    return min(ladder, key=lambda one: abs(math.log(one / users)))


def _pools(
    loaded: LoadedScenario,
    choice: Sequence[PoolChoice],
    losers: Sequence[str],
    drafts: int,
    replicas: int,
    replications: int,
    mapped: Mapped,
    progress: Progress,
) -> dict[str, Any]:
    """Pools simulated beside the shared engine on as many replicas.

    Recommended if no slice loses, those that lost are faster than in the shared engine, and all together lose no 1 %.
    """
    fixed = fixed_name(drafts)
    traffic = pools_traffic(loaded, choice, drafts, replicas, replications, mapped, progress)
    total = sum(pool.replicas for pool in choice)
    document = traffic.document()
    rows = slice_rows(document, [fixed, POOLS], total)
    still = losing_slices(rows, POOLS)
    mended = not still and POOLS in traffic.judged and _behind(traffic, POOLS, fixed) < LEAST_GAIN
    return {
        "pools": pool_list(choice),
        "replicas": total,
        "traffic_factor": total / replicas,
        "slices": rows,
        "losing_slices": still,
        "ratio_to_shared": traffic.ratio(POOLS, fixed),
        "recommended": mended and all(_faster(rows[name], fixed) for name in losers),
        "traffic": document,
    }


def _faster(by_arm: Mapping[str, Any], fixed: str) -> bool:
    """Whether a slice is faster in pools than in the shared engine: by TPOT, or by E2E latency where it has none."""
    values = [(by_arm[POOLS][metric]["value"], by_arm[fixed][metric]["value"]) for metric in JUDGED]
    return next((pooled < shared for pooled, shared in values if pooled is not None and shared is not None), False)


def _flags(
    loaded: LoadedScenario, recommendation: Mapping[str, Any], ranges: Sequence[Sequence[int]], max_num_seqs: int
) -> list[dict[str, Any]]:
    """Flags of the recommendation, pool by pool, then those of the schedule, marked as recommended or not."""
    speculation = loaded.scenario.speculation
    assert speculation is not None  # `check_tunable`
    parts: list[dict[str, Any]] = []
    if recommendation["kind"] == "pools":
        for pool in recommendation["pools"]:
            label = f"{counted(pool['replicas'], 'replica')} for {', '.join(pool['slices'])}"
            flags = fixed_flags(speculation, pool["num_speculative_tokens"], max_num_seqs)
            parts.append(_part(label, True, flags))
    elif recommendation["kind"] != "schedule":
        drafts = recommendation["num_speculative_tokens"]
        label = f"fixed, {counted(drafts, 'draft token')}" if drafts else "no speculation"
        parts.append(_part(label, True, fixed_flags(speculation, drafts, max_num_seqs)))
    told = schedule_flags(speculation, ranges, max_num_seqs)
    parts.append(_part("schedule", recommendation["kind"] == "schedule", told))
    return parts


def _part(label: str, recommended: bool, flags: Sequence[Any]) -> dict[str, Any]:
    engines = [{**one._asdict(), "notes": list(one.notes)} for one in flags]
    return {"label": label, "recommended": recommended, "engines": engines}
