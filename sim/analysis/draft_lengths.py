"""Which draft lengths a schedule or policy chose, and what reaching 0 still costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from ..engine.records import Floats, Ints, Records


class DraftLengths(NamedTuple):
    """Over all steps of an arm, by the drafts that they proposed: steps, their time, drafting time, decode rows."""

    steps: Ints
    step_ms: Floats
    drafting_ms: Floats
    decode_rows: Floats


class DraftLengthRow(TypedDict):
    """One draft length: its share of the steps' time, its mean decode batch, and the drafting in each of its steps."""

    drafts: int
    time_share: float
    mean_decode_rows: float
    drafting_ms_per_step: float


def draft_lengths(records: Records, most_drafts: int) -> DraftLengths:
    """Sums by proposed drafts, 0 to `most_drafts`."""
    size = most_drafts + 1
    steps, sums = np.zeros(size, dtype=np.int64), np.zeros((3, size))
    for one in records.steps:
        steps += np.bincount(one.proposed_drafts, minlength=size)
        for row, weights in zip(sums, (one.duration_ms, one.draft_ms, one.decode_rows), strict=True):
            row += np.bincount(one.proposed_drafts, weights, minlength=size)
    return DraftLengths(steps, *sums)


def draft_length_rows(replications: Sequence[DraftLengths]) -> list[DraftLengthRow]:
    """A row for each length that any step proposed; none without replications."""
    if not replications:
        return []
    steps, step_ms, drafting_ms, decode_rows = (np.sum(column, axis=0) for column in zip(*replications, strict=True))
    all_ms = float(step_ms.sum())
    return [
        DraftLengthRow(
            drafts=drafts,
            time_share=float(step_ms[drafts]) / all_ms,
            mean_decode_rows=float(decode_rows[drafts] / steps[drafts]),
            drafting_ms_per_step=float(drafting_ms[drafts] / steps[drafts]),
        )
        for drafts in np.flatnonzero(steps).tolist()
        if all_ms
    ]
