"""Where the draft length should change with the load, and where speculation should be off: found by simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..analysis.choice import close_to_best, ratio_row
from ..analysis.draft_schedule import LEAST_GAIN, fewest_stretches, ranges_of
from ..analysis.statistics import Sample
from .closed_load import Scope
from .load_store import LoadStore
from .plan import ArmPlan
from .tune_arms import OFF, ZERO, fixed_name

MOST_HALVINGS = 5


class Crossing(NamedTuple):
    """One arm is better up to `low`, another from `high` on; in between no difference shows, or nobody looked."""

    low: int
    high: int


def loaded_name(drafts: int) -> str:
    """The arm of a draft length within a schedule, where the drafter stays loaded."""
    return fixed_name(drafts) if drafts else ZERO


def scope_schedule(
    store: LoadStore,
    scope: Scope,
    ladder: Sequence[int],
    plans: Mapping[str, ArmPlan],
    most_drafts: int,
    most_requests: int,
) -> dict[str, Any]:
    """The schedule of one scope: [first, last, drafts] ranges, and how well the place of each change is known."""
    by_batch = _candidates(store, scope, ladder, plans, most_drafts)
    stretches = fewest_stretches(by_batch)
    changes = []
    for before, after in pairwise(stretches):
        arms = plans[loaded_name(before.drafts)], plans[loaded_name(after.drafts)]
        found = crossing(store, scope, arms, before.batches[-1], after.batches[0])
        last = (found.low + found.high) // 2
        changes.append({"from": before.drafts, "to": after.drafts, "last": last, "low": found.low, "high": found.high})
    ranges = ranges_of([one.drafts for one in stretches], [one["last"] for one in changes], most_requests)
    return {"ranges": ranges, "num_speculative_tokens": max(1, *(one[2] for one in ranges)), "changes": changes}


def _candidates(
    store: LoadStore, scope: Scope, ladder: Sequence[int], plans: Mapping[str, ArmPlan], most_drafts: int
) -> dict[int, dict[int, Sample]]:
    """Throughput by load and length. A loaded drafter at 0 is never faster than none, so it is simulated only where
    none is good enough."""
    fixed = {
        batch: {drafts: store.sample(scope, batch, fixed_name(drafts)) for drafts in range(most_drafts + 1)}
        for batch in ladder
    }
    idle = [batch for batch, samples in fixed.items() if 0 in close_to_best(samples, LEAST_GAIN)]
    store.simulate([(scope, batch, [plans[ZERO]]) for batch in idle], f"{scope.name}: the schedule at 0")
    for batch, samples in fixed.items():
        del samples[0]
        if batch in idle:
            samples[0] = store.sample(scope, batch, ZERO)
    return fixed


def break_even_concurrency(
    store: LoadStore, scope: Scope, ladder: Sequence[int], plans: Mapping[str, ArmPlan], most_drafts: int
) -> dict[str, Any]:
    """The load up to which speculation pays, against none at all.

    pays_up_to: the highest concurrency at which some length was shown to be better, None if there is none; off_from:
    the lowest above it at which it was not, None if it pays to the end of the ladder.
    """
    paying = [(batch, drafts) for batch in ladder if (drafts := _paying(store, scope, batch, most_drafts))]
    if not paying:
        return {"pays_up_to": None, "off_from": ladder[0], "num_speculative_tokens": None}
    batch, drafts = paying[-1]
    above = [one for one in ladder if one > batch]
    if not above:
        return {"pays_up_to": batch, "off_from": None, "num_speculative_tokens": drafts}
    found = crossing(store, scope, (plans[fixed_name(drafts)], plans[OFF]), batch, above[0])
    return {"pays_up_to": found.low, "off_from": found.high, "num_speculative_tokens": drafts}


def _paying(store: LoadStore, scope: Scope, batch: int, most_drafts: int) -> int | None:
    """The best length of at least 1 if it is better than none."""
    off = store.sample(scope, batch, OFF)
    samples = {drafts: store.sample(scope, batch, fixed_name(drafts)) for drafts in range(1, most_drafts + 1)}
    best = max(samples, key=lambda drafts: samples[drafts].estimate)
    return best if ratio_row(samples[best], off)["verdict"] == "better" else None


def crossing(store: LoadStore, scope: Scope, arms: tuple[ArmPlan, ArmPlan], low: int, high: int) -> Crossing:
    """Between two loads, where the second arm overtakes the first: halved until noise or neighbours stop it."""
    first, second = arms
    for _ in range(MOST_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        store.simulate([(scope, middle, arms)], f"{scope.name}: k = {first.drafts} or {second.drafts}")
        row = ratio_row(store.sample(scope, middle, first.name), store.sample(scope, middle, second.name))
        if row["verdict"] == "better":
            low = middle
        elif row["verdict"] == "worse":
            high = middle
        else:
            break
    return Crossing(low, high)
