"""Slices that lose by the draft length that is best for all: what that costs them, and pools that mend it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..inputs.load import LoadedScenario
from .closed_load import Scope
from .executors import Mapped
from .load_store import LoadStore, Progress
from .tune_arms import OFF, fixed_name
from .tune_traffic import Traffic, multiplied, run_traffic

LEAST_EFFECT = 0.01  # as in the answer of `specsim run`: less decides nothing
JUDGED = ("mean_tpot_ms", "mean_e2el_ms")
PRICES = ("usd_per_million_output_tokens", "usd_per_request", "usd_per_successful_task")
MOST_REPLICAS = 8  # of all pools together, where the scenario has one replica
POOLS = "pools"


class PoolChoice(NamedTuple):
    """One pool: its slices, replicas, and draft length."""

    slices: tuple[str, ...]
    replicas: int
    drafts: int


def slice_rows(document: Mapping[str, Any], arms: Sequence[str], replicas: int) -> dict[str, Any]:
    """For each slice and arm: who gains and who loses against `off`, and what its tokens and tasks cost.

    document: that of a `Traffic`; {} where there is one slice. replica_s_per_million_tokens: the price without a price.
    """
    names = list(document["arms"][OFF].get("slices", {}))
    return {name: {arm: _slice_row(document, arm, name, replicas) for arm in (OFF, *arms)} for name in names}


def _slice_row(document: Mapping[str, Any], arm: str, name: str, replicas: int) -> dict[str, Any]:
    whole = document["arms"][arm]
    own = whole["slices"][name]
    tokens = own["total_output_tokens"]
    compared = {} if arm == OFF else document["comparison"][arm]["slices"][name]
    return {
        "effect": slice_effect(compared),
        "gpu_time_share": own["gpu_time_share"],
        "replica_s_per_million_tokens": 1e6 * whole["duration"] * replicas * own["gpu_time_share"] / tokens
        if tokens
        else None,
        **{metric: {"value": own[metric], **compared.get(metric, _UNTESTED)} for metric in JUDGED},
        **{price: {"value": (own.get("cost") or {}).get(price), **compared.get(price, _UNTESTED)} for price in PRICES},
    }


_UNTESTED = {"ratio": None, "low": None, "high": None, "verdict": "not_tested"}


def slice_effect(compared: Mapping[str, Any]) -> str:
    """gains, loses, is a trade, or same: by TPOT and E2E latency against no speculation."""
    rows = [compared[metric] for metric in JUDGED if metric in compared]
    better = any(row["verdict"] == "better" and row["ratio"] < 1 - LEAST_EFFECT for row in rows)
    worse = any(row["verdict"] == "worse" and row["ratio"] > 1 + LEAST_EFFECT for row in rows)
    if better and worse:
        return "is a trade"
    return "loses" if worse else "gains" if better else "same"


def losing_slices(rows: Mapping[str, Any], arm: str) -> list[str]:
    """Slices that an arm makes slower."""
    return [name for name, by_arm in rows.items() if by_arm[arm]["effect"] == "loses"]


def chosen_pools(
    store: LoadStore,
    scopes: Sequence[Scope],
    losers: Sequence[str],
    concurrency: int,
    most_drafts: int,
    replicas: int,
    tokens: Mapping[str, float],
) -> list[PoolChoice]:
    """A pool for the slices that lose and one for the others, each with its best length and its part of the replicas.

    concurrency: that of one replica, among those simulated. tokens: output tokens of each slice, for how much work it
    brings. One replica becomes as few as divide the work evenly, at most `MOST_REPLICAS`.
    """
    alone = [scope for scope in scopes if scope.kind == "slice"]
    groups = [[scope for scope in alone if (scope.name in losers) == losing] for losing in (False, True)]
    lengths = [_best_length(store, group, concurrency, most_drafts) for group in groups]
    work = [
        sum(tokens[scope.name] / store.sample(scope, concurrency, fixed_name(drafts)).estimate for scope in group)
        for group, drafts in zip(groups, lengths, strict=True)
    ]
    first = _first_share(work[0] / sum(work), replicas)
    return [
        PoolChoice(tuple(scope.name for scope in group), count, drafts)
        for group, count, drafts in zip(groups, first, lengths, strict=True)
    ]


def _best_length(store: LoadStore, group: Sequence[Scope], concurrency: int, most_drafts: int) -> int:
    """The shortest length that loses less than 1 % of the best product of throughputs."""

    def score(drafts: int) -> float:
        samples = [store.sample(scope, concurrency, fixed_name(drafts)) for scope in group]
        return sum(math.log(sample.estimate) for sample in samples)

    scores = [score(drafts) for drafts in range(most_drafts + 1)]
    return next(drafts for drafts, one in enumerate(scores) if one > max(scores) - LEAST_EFFECT)


def _first_share(share: float, replicas: int) -> tuple[int, int]:
    """Replicas of the first and the second pool, whose work is `share` and the rest, so that neither waits for long."""

    def busiest(split: tuple[int, int]) -> float:
        total = split[0] + split[1]
        return max(share * total / split[0], (1 - share) * total / split[1])

    totals = [replicas] if replicas > 1 else range(2, MOST_REPLICAS + 1)
    splits = [(one, total - one) for total in totals for one in range(1, total)]
    even = [split for split in splits if busiest(split) < 1.1]
    return min(even, key=sum) if even and replicas == 1 else min(splits, key=busiest)


def pools_traffic(
    loaded: LoadedScenario,
    pools: Sequence[PoolChoice],
    shared_drafts: int,
    replicas: int,
    replications: int,
    mapped: Mapped,
    progress: Progress,
) -> Traffic:
    """`off`, the shared length and the pools on as many replicas; the traffic grows with them."""
    total = sum(pool.replicas for pool in pools)
    arms: dict[str, dict[str, Any]] = {
        fixed_name(shared_drafts): {"speculation.num_speculative_tokens": shared_drafts},
        POOLS: {
            "speculation.num_speculative_tokens": max(pool.drafts for pool in pools),
            "engine.replicas": 1,
            "engine.pools": pool_list(pools),
        },
    }
    own: dict[str, Any] = {"speculation.num_speculative_tokens_per_batch_size": None, "speculation.policy": "fixed"}
    return run_traffic(
        multiplied(loaded, total / replicas),
        {name: arm | own for name, arm in arms.items()},
        {"pools": None, "replicas": total},
        replications,
        mapped,
        progress,
        "pools",
    )


def pool_list(pools: Sequence[PoolChoice]) -> list[dict[str, Any]]:
    """The pools as `engine.pools` of a scenario."""
    return [
        {"slices": list(pool.slices), "replicas": pool.replicas, "num_speculative_tokens": pool.drafts}
        for pool in pools
    ]
