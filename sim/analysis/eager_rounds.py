"""Pure decode steps that ran without a CUDA graph, because no captured size covers their rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..cost.step_costs import GraphMode
from ..engine.records import Records


class EagerRounds(NamedTuple):
    """Time of such steps and of all steps, and the rows and requests of those that took most of it."""

    eager_ms: float
    all_ms: float
    rows: int
    requests: int


def eager_rounds(records: Records) -> EagerRounds:
    """Eager steps in which every row was a decode."""
    all_ms = eager_ms = 0.0
    by_shape: dict[tuple[int, int], float] = {}
    for steps in records.steps:
        duration_ms = steps.duration_ms
        all_ms += float(duration_ms.sum())
        chosen = (steps.graph_mode == GraphMode.EAGER) & (steps.prefill_rows == 0)
        if not chosen.any():
            continue
        shapes = np.stack([(steps.decode_rows + steps.draft_tokens)[chosen], steps.decode_rows[chosen]])
        kinds, index = np.unique(shapes, axis=1, return_inverse=True)
        for (rows, requests), ms in zip(kinds.T.tolist(), np.bincount(index.ravel(), duration_ms[chosen]), strict=True):
            by_shape[rows, requests] = by_shape.get((rows, requests), 0.0) + float(ms)
    if by_shape:
        eager_ms = sum(by_shape.values())
    rows, requests = max(by_shape, key=lambda shape: by_shape[shape], default=(0, 0))
    return EagerRounds(eager_ms, all_ms, rows, requests)
