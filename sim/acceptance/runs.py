"""Acceptance as the engine meets it: per output position, how many draft tokens in a row would be accepted.

For any draft length k, even one that changes every round, a round at output position p verifies d drafts with

    d = min(drafted[p], k);  a = min(accepted[p], d);  commits min(a + 1, end - p);  p += a + 1

p is the index of the first drafted token: the prefill emits token 0, rounds start at p = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AcceptanceRuns:
    """The two arrays of all requests, flattened; `offsets[r] + p` is output position p of request r.

    accepted: uint8, accepted run at each position, counted up to `depth` draft positions.
    drafted: uint8 in the same shape, or None where the drafter always proposes k tokens (chains).
    depth: the largest draft position that the array can tell apart, at least one more than the largest k in use.
    measured_depth: draft positions beyond it hold the last measured value; None where the model has no such end.
    """

    offsets: NDArray[np.int64]
    accepted: NDArray[np.uint8]
    drafted: NDArray[np.uint8] | None
    depth: int
    measured_depth: int | None = None
