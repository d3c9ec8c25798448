"""What one load says: throughput by draft length, each draft token's worth, and where speculation stops to pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..analysis.choice import best_of, ratio_row
from ..analysis.marginal import marginal_rows
from ..analysis.statistics import Sample, mean_interval
from .closed_load import LoadMeasure, Scope
from .load_store import LoadStore
from .marginal import mean_round_ms, mean_verified
from .plan import ArmPlan
from .tune_arms import GOODPUT, OFF, SCHEDULE, ZERO, fixed_name


def batch_object(
    store: LoadStore, scope: Scope, concurrency: int, plans: Mapping[str, ArmPlan], most_drafts: int
) -> dict[str, Any]:
    """The part of a result about one concurrency; reached_0 is None where nobody asked for it."""
    lengths = range(most_drafts + 1)
    samples = {drafts: store.sample(scope, concurrency, fixed_name(drafts)) for drafts in lengths}
    best = best_of(samples)
    off = samples[0]
    tied = sorted({best.key, *best.ties})
    plain = _timing(store, scope, concurrency, plans[OFF], 0)
    rows = [
        _row(store, scope, concurrency, fixed_name(drafts), samples[best.key], off)
        | {"num_speculative_tokens": drafts}
        | (
            _break_even(store, scope, concurrency, plans[fixed_name(drafts)], drafts, plain)
            if drafts
            else _NO_BREAK_EVEN
        )
        for drafts in lengths
    ]
    reachable = [row for row in rows if row["break_even_alpha"] is not None]
    easiest = min(reachable, key=lambda row: row["break_even_alpha"], default=None)
    others = {
        key: _row(store, scope, concurrency, name, samples[best.key], off)
        if store.knows(scope, concurrency, name)
        else None
        for key, name in (("reached_0", ZERO), ("goodput", GOODPUT), ("schedule", f"{SCHEDULE} {scope.name}"))
    }
    return {
        "concurrency": concurrency,
        "best": {
            "num_speculative_tokens": best.key,
            "low": tied[0],
            "high": tied[-1],
            "ties": sorted(best.ties),
            "output_throughput": samples[best.key].estimate,
            "interval": _interval(samples[best.key]),
            "ratio_to_off": ratio_row(samples[best.key], off),
        },
        "fixed": rows,
        **others,
        "break_even_acceptance": None
        if easiest is None
        else {"alpha": easiest["break_even_alpha"], "num_speculative_tokens": easiest["num_speculative_tokens"]},
        "marginal": _marginal(store, scope, concurrency, plans, most_drafts),
    }


_NO_BREAK_EVEN = {"break_even_tokens_per_round": None, "break_even_alpha": None}


def _row(store: LoadStore, scope: Scope, concurrency: int, arm: str, best: Sample, off: Sample) -> dict[str, Any]:
    measures, sample = store.measures(scope, concurrency, arm), store.sample(scope, concurrency, arm)
    rounds = sum(one.counts.rounds for one in measures)
    drafted = sum(one.counts.draft_tokens for one in measures)
    accepted = sum(one.counts.accepted_tokens for one in measures)
    committed = sum(one.counts.committed_by_rounds for one in measures)
    return {
        "output_throughput": sample.estimate,
        "interval": _interval(sample),
        "ratio_to_off": ratio_row(sample, off),
        "ratio_to_best": ratio_row(sample, best),
        "mean_tpot_ms": _mean([one.mean_tpot_ms for one in measures]),
        "mean_ttft_ms": _mean([one.mean_ttft_ms for one in measures]),
        "mean_decode_batch": _decode_batch(measures),
        "committed_tokens_per_round": committed / rounds if rounds else None,
        "draft_tokens_per_round": drafted / rounds if rounds else None,
        "wasted_draft_tokens_per_round": (drafted - accepted) / rounds if rounds else None,
        "wasted_draft_share": (drafted - accepted) / drafted if drafted else None,
        "preemptions": sum(one.preemptions for one in measures),
        "extrapolated_share": _mean([one.extrapolated_share for one in measures]),
    }


def _interval(sample: Sample) -> list[float] | None:
    interval = mean_interval(sample)
    return None if interval is None else list(interval)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _decode_batch(measures: Sequence[LoadMeasure]) -> float | None:
    steps = sum(one.decode_steps for one in measures)
    return sum(one.decode_rows for one in measures) / steps if steps else None


def _context(measures: Sequence[LoadMeasure]) -> float:
    return sum(one.context_tokens for one in measures) / max(1, sum(one.decode_rows for one in measures))


def _marginal(
    store: LoadStore, scope: Scope, concurrency: int, plans: Mapping[str, ArmPlan], most_drafts: int
) -> list[dict[str, Any]]:
    """Rows 1 to the longest draft, at the decode batch and context that the longest draft had."""
    measures = store.measures(scope, concurrency, fixed_name(most_drafts))
    batch, context = _decode_batch(measures), _context(measures)
    if batch is None:
        return []
    verified = mean_verified([one.counts for one in measures])
    rows = marginal_rows(
        np.sum([one.counts.committed_at for one in measures], axis=0),
        np.sum([one.counts.delivered_at for one in measures], axis=0),
        sum(one.counts.rounds for one in measures),
        lambda drafts: mean_round_ms(plans[fixed_name(drafts)], batch, drafts, context, verified[drafts]),
        most_drafts,
    )
    return [{**row, "p_wasted": 1 - row["p_committed"]} for row in rows]


def _timing(store: LoadStore, scope: Scope, concurrency: int, arm: ArmPlan, drafts: int) -> tuple[float, float] | None:
    """The time of a round, and what a user waits for a token beyond its share of one: prompts, queues, launches."""
    measures = store.measures(scope, concurrency, arm.name)
    batch = _decode_batch(measures)
    rounds = sum(one.counts.rounds for one in measures)
    if batch is None or not rounds:
        return None
    verified = mean_verified([one.counts for one in measures])[drafts]
    round_ms = mean_round_ms(arm, batch, drafts, _context(measures), verified)
    committed = sum(one.counts.committed_by_rounds for one in measures) / rounds
    per_token_ms = 1e3 * concurrency / store.sample(scope, concurrency, arm.name).estimate
    return round_ms, per_token_ms - round_ms / committed


def _break_even(
    store: LoadStore,
    scope: Scope,
    concurrency: int,
    arm: ArmPlan,
    drafts: int,
    plain: tuple[float, float] | None,
) -> dict[str, float | None]:
    """Tokens per round at which this length is as fast as none, and the iid acceptance that gives them.

    A user of the load waits round / tokens + rest for a token, with `rest` as simulated; without speculation the round
    and its rest. The two are equal at round / (plain round + plain rest - rest) tokens per round.
    """
    own = _timing(store, scope, concurrency, arm, drafts)
    if own is None or plain is None or sum(plain) <= own[1]:
        return dict(_NO_BREAK_EVEN)
    tokens = own[0] / (sum(plain) - own[1])
    return {"break_even_tokens_per_round": tokens, "break_even_alpha": alpha_of(tokens, drafts)}


def alpha_of(tokens_per_round: float, drafts: int) -> float | None:
    """The chance of every draft token, independent of all others, that commits so many tokens a round: 0 where one
    token is enough, None where all drafts are not."""
    if tokens_per_round > drafts + 1:
        return None
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        if sum(middle**place for place in range(drafts + 1)) < tokens_per_round:
            low = middle
        else:
            high = middle
    return low if tokens_per_round <= 1 else high
