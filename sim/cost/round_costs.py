"""Costs from whole rounds: one measured time for each batch and draft length, not split into phases."""

from __future__ import annotations

import math

import numpy as np

from ..inputs.calibration import RoundCosts
from .curve import bracket
from .step_costs import Floats, GraphMode, RoundTable, StepShape, StepTerms


class RoundStepCosts:
    """A compiled table of rounds: linear between measured cells, extrapolated and said so beyond them.

    All time is booked as the target's, because such a table does not say what drafting took.
    """

    def __init__(self, costs: RoundCosts) -> None:
        self._batch = np.array(costs.batch, dtype=np.float64)
        self._drafts = np.array(costs.drafts, dtype=np.float64)
        self._rows = [np.array([np.nan if ms is None else ms for ms in row]) for row in costs.ms]
        self._prompt_row_ms = costs.prefill_per_token_us * 1e-3
        self._known: dict[tuple[float, float], tuple[float, bool]] = {}

    def round_ms(self, batch: float, drafts: float) -> tuple[float, bool]:
        """Time of a round and whether it lies beyond the measured cells."""
        known = self._known.get((batch, drafts))
        if known is None:
            known = self._known[batch, drafts] = self._look_up(batch, drafts)
        return known

    def _look_up(self, batch: float, drafts: float) -> tuple[float, bool]:
        columns = [_over_drafts(self._drafts[~np.isnan(row)], row[~np.isnan(row)], drafts) for row in self._rows]
        ms, beyond_batch = _over_batch(self._batch, np.array([ms for ms, _ in columns]), batch)
        low, high, _ = bracket(self._batch.tolist(), batch)
        return ms, beyond_batch or columns[low][1] or columns[high][1]

    def terms(self, shape: StepShape, draft_passes: int) -> StepTerms:
        """Cost of a step: a round of its decodes, and its prompt rows on top."""
        ms, beyond = 0.0, False
        if shape.decodes:
            ms, beyond = self.round_ms(shape.decodes, shape.draft_tokens / shape.decodes)
        target = ms
        if shape.chunks:
            prompt_ms = self._prompt_row_ms * sum(tokens for tokens, _ in shape.chunks)
            target = ms + prompt_ms if shape.decodes else self.round_ms(1, 0)[0] + prompt_ms
        return StepTerms(0.0, target, ms, 0.0, 0.0, 0.0, beyond, GraphMode.NONE)

    def rounds(self, decodes: int, drafts: int, context_tokens: Floats, draft_passes: int) -> RoundTable:
        """Cost of several steps that are rounds of the same requests; contexts do not matter here."""
        ms, beyond = self.round_ms(decodes, float(drafts))
        phases = np.zeros((6, len(context_tokens)))
        phases[1] = phases[2] = ms
        return RoundTable(phases, beyond, GraphMode.NONE)

    def chunk_ms(self, rows: int, context_tokens: int, finishes: bool) -> float:
        """A target pass over nothing but one prompt chunk."""
        return self.round_ms(1, 0)[0] + self._prompt_row_ms * rows


def _over_drafts(points: Floats, values: Floats, drafts: float) -> tuple[float, bool]:
    """Time of one batch row at any draft length; between whole ones linear."""
    below = math.floor(drafts)
    ms, beyond = _at_drafts(points, values, below)
    if below == drafts:
        return ms, beyond
    above_ms, above_beyond = _at_drafts(points, values, below + 1)
    return ms + (above_ms - ms) * (drafts - below), beyond or above_beyond


def _at_drafts(points: Floats, values: Floats, drafts: int) -> tuple[float, bool]:
    """Linear between measured draft lengths of at least 1; outside, from the nearest along the mean slope of them all.

    Every further draft adds one serial pass and one verified row: the mean slope is steadier than that of two points.
    The step from none to one is another matter, it brings the drafter as such; so 0 is a point of its own.
    """
    drafting = points >= 1
    if drafts == 0 or not drafting.any():
        measured = bool(points[0] == 0)
        return float(values[0]), not (measured and drafts == 0)
    points, values = points[drafting], values[drafting]
    if points[0] <= drafts <= points[-1]:
        return float(np.interp(drafts, points, values)), False
    nearest = 0 if drafts < points[0] else -1
    slope = float(np.polyfit(points, values, 1)[0]) if len(points) > 1 else 0.0
    return float(values[nearest]) + slope * (drafts - float(points[nearest])), True


def _over_batch(points: Floats, values: Floats, batch: float) -> tuple[float, bool]:
    """Linear between measured batches; above them along the last slope, where rows cost compute time; below, held."""
    if batch <= points[-1] or len(points) == 1:
        return float(np.interp(batch, points, values)), bool(batch > points[-1])
    slope = (values[-1] - values[-2]) / (points[-1] - points[-2])
    return float(values[-1] + slope * (batch - points[-1])), True
