"""Prompt and output lengths in tokens, drawn from the distributions of a slice."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..formats.length_file import read_lengths
from ..inputs.numbers import MAX_TOKENS
from ..inputs.scenario import Empirical, Geometric, Length, Lognormal, Uniform

_Z90 = 1.2815515655446004  # 90 % quantile of the standard normal


def sample_lengths(length: Length, count: int, rng: np.random.Generator, base_dir: Path) -> NDArray[np.int64]:
    """`count` lengths of at least 1 token; relative paths start at `base_dir`.

    Entry i depends on the i-th draw alone, and grows with it: a changed parameter moves every length in one direction.
    Raises InputError if an empirical file cannot be used.
    """
    if isinstance(length, Lognormal):
        return _lognormal(length, rng.standard_normal(count))
    if isinstance(length, Geometric):
        return _geometric(length, rng.standard_exponential(count))
    if isinstance(length, Uniform):
        span = length.high - length.low + 1
        return length.low + (rng.random(count) * span).astype(np.int64)
    if isinstance(length, Empirical):
        recorded = read_lengths(base_dir / length.path)
        return recorded[(rng.random(count) * len(recorded)).astype(np.int64)]
    return np.full(count, length, dtype=np.int64)


def _lognormal(length: Lognormal, normal: NDArray[np.float64]) -> NDArray[np.int64]:
    median = math.log(length.median)
    sigma = (math.log(length.p90) - median) / _Z90
    logs = np.minimum(median + sigma * normal, math.log(MAX_TOKENS))
    return np.clip(np.rint(np.exp(logs)), 1, length.max or MAX_TOKENS).astype(np.int64)


def _geometric(length: Geometric, exponential: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first whole number above an exponential of rate -log(1 - 1/mean) is geometric with that mean."""
    if length.mean == 1:
        return np.ones(len(exponential), dtype=np.int64)
    tokens = np.ceil(exponential / -math.log1p(-1 / length.mean))
    return np.clip(tokens, 1, length.max or MAX_TOKENS).astype(np.int64)
