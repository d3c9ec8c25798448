"""The marginal table of an arm: what each further draft token costs and brings at the load that was simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..analysis.marginal import MarginalRow, marginal_rows
from ..cost.step_costs import round_shape
from ..engine.records import SamplerCounts
from .plan import ArmPlan
from .replicate import ArmReplication


def marginal_table(arm: ArmPlan, baseline: ArmPlan, replications: Sequence[ArmReplication]) -> list[MarginalRow]:
    """Rows for positions 1 to k, k + 1 where the acceptance model reaches it; [] without speculation or for pools."""
    decode_steps = sum(one.decode_steps for one in replications)
    if not arm.drafts or not decode_steps or len(arm.pools) > 1:
        return []
    decode_rows = sum(one.decode_rows for one in replications)
    batch = decode_rows / decode_steps
    context = sum(one.context_tokens for one in replications) / decode_rows
    committed_at = np.sum([one.counts.committed_at for one in replications], axis=0)
    delivered_at = np.sum([one.counts.delivered_at for one in replications], axis=0)
    rounds = sum(one.counts.rounds for one in replications)
    verified = mean_verified([one.counts for one in replications])
    depth = replications[0].measured_depth
    positions = arm.drafts + 1 if depth is None or depth > arm.drafts else arm.drafts
    return marginal_rows(
        committed_at,
        delivered_at,
        rounds,
        lambda k: mean_round_ms(arm if k else baseline, batch, k, context, verified[k]),
        positions,
    )


def mean_verified(counts: Sequence[SamplerCounts]) -> list[float]:
    """Drafts that a round verifies in the mean, by k from 0 on: a look-up without a match has none."""
    rounds = sum(one.rounds for one in counts)
    proposed_at = np.sum([one.proposed_at for one in counts], axis=0)
    return [0.0, *(np.cumsum(proposed_at) / rounds).tolist()]


def mean_round_ms(arm: ArmPlan, batch: float, drafts: int, context_per_request: float, verified: float) -> float:
    """Round time at a mean batch and a mean number of drafts verified per request: linear between whole ones."""

    def of_batch(requests: int) -> float:
        context = round(requests * context_per_request)
        return _between(lambda tokens: _step_ms(arm, requests, tokens, context, drafts), requests * verified)

    return _between(of_batch, max(1.0, batch))


def _between(of_whole: Callable[[int], float], number: float) -> float:
    below = math.floor(number + 1e-9)
    part = max(0.0, number - below)
    at_below_ms = of_whole(below)
    return at_below_ms + part * (of_whole(below + 1) - at_below_ms) if part else at_below_ms


def round_ms(arm: ArmPlan, batch: int, drafts: int, context_tokens: int) -> float:
    """Time of one step in which `batch` requests each verify `drafts` drafts and draft as many anew."""
    return _step_ms(arm, batch, batch * drafts, context_tokens, drafts)


def _step_ms(arm: ArmPlan, batch: int, draft_tokens: int, context_tokens: int, drafts: int) -> float:
    shape = round_shape(batch, 0, context_tokens)._replace(draft_tokens=draft_tokens)
    return arm.costs.terms(shape, arm.passes(drafts)).host_and_step_ms(arm.settings.async_scheduling)[1]
