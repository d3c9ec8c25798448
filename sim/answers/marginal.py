"""The marginal table of an arm: what each further draft token costs and brings at the load that was simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..analysis.marginal import MarginalRow, marginal_rows
from ..cost.step_costs import round_shape
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
    depth = replications[0].measured_depth
    positions = arm.drafts + 1 if depth is None or depth > arm.drafts else arm.drafts
    return marginal_rows(
        committed_at,
        delivered_at,
        rounds,
        lambda k: mean_round_ms(arm if k else baseline, batch, k, context),
        positions,
    )


def mean_round_ms(arm: ArmPlan, batch: float, drafts: int, context_per_request: float) -> float:
    """Round time at a mean batch: between the two whole batches around it, linearly."""
    below = max(1, math.floor(batch))
    part = max(0.0, batch - below)
    at_below_ms = round_ms(arm, below, drafts, round(below * context_per_request))
    if not part:
        return at_below_ms
    at_above_ms = round_ms(arm, below + 1, drafts, round((below + 1) * context_per_request))
    return at_below_ms + part * (at_above_ms - at_below_ms)


def round_ms(arm: ArmPlan, batch: int, drafts: int, context_tokens: int) -> float:
    """Time of one step in which `batch` requests each verify `drafts` drafts and draft as many anew."""
    terms = arm.costs.terms(round_shape(batch, drafts, context_tokens), arm.passes(drafts))
    return terms.host_and_step_ms(arm.settings.async_scheduling)[1]
