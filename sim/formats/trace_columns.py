"""A recorded request trace as columns, whatever tool wrote it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """One entry per request in arrival order; `arrival_ms` counts from the first row. The arrays are read-only."""

    arrival_ms: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.arrival_ms)
