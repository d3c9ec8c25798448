"""Accepted runs from uniforms: how many survival probabilities lie above each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .law import AcceptanceLaw, Floats, probability


def count_accepted(law: AcceptanceLaw, uniforms: Floats, hardness: Floats, depth: int) -> NDArray[np.uint8]:
    """Survival probabilities above the uniform of each position; hardness is [request, 1] or [request, position]."""
    width = uniforms.shape[1]
    survival = np.ones((1, 1))
    counts = np.zeros(uniforms.shape, dtype=np.uint8)
    for i in range(depth):
        here = hardness[:, i : i + width] if law.memory_sd else hardness
        survival = survival * probability(law.odds_at(i), here)
        counts += uniforms < survival
    return counts
