"""A stationary AR(1) over output positions: hard stretches of text are hard for several tokens in a row."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .law import Floats

_NEGLIGIBLE = 1e-18
_GOLDEN_RATIO = (5**0.5 - 1) / 2
_LEAST_PROBABILITY = 1e-9


def stationary_states(normals: Floats, phi: float, sd: float) -> Floats:
    """States x[.., p] of independent AR(1) rows from standard normals of the same shape.

    x[0] = sd * e[0], x[p] = phi * x[p-1] + sd * sqrt(1 - phi^2) * e[p]: every x[p] has standard deviation sd. Sums of
    phi^j * e[p-j] are doubled in reach until phi^reach vanishes: a handful of passes instead of a loop over positions.
    """
    states = normals * (sd * math.sqrt(1 - phi * phi))
    states[..., 0] = normals[..., 0] * sd
    reach, weight = 1, phi
    while weight > _NEGLIGIBLE and reach < states.shape[-1]:
        states[..., reach:] += weight * states[..., :-reach]
        reach, weight = 2 * reach, weight * weight
    return states


def normal_quantiles(probabilities: NDArray[np.floating]) -> Floats:
    """Quantiles of the standard normal distribution, within 6 standard deviations."""
    quantile = NormalDist().inv_cdf
    kept = np.clip(probabilities, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    return np.array([quantile(float(probability)) for probability in kept])


def even_normals(count: int, rng: np.random.Generator) -> Floats:
    """Standard normals without the noise of a sample: evenly spread over their distribution, and so is any stretch.

    Steps of the golden ratio through the quantiles, from a random one on. With requests sorted by length, every length
    meets easy and hard ones alike.
    """
    return normal_quantiles((rng.random() + _GOLDEN_RATIO * np.arange(count)) % 1)


def normals_from_uniforms(uniforms: Floats) -> Floats:
    """Standard normals, two from each pair of uniforms in [0, 1) along the last axis (Box and Muller, 1958).

    A fixed number of draws per normal keeps every position's draw in its place. The last axis has an even length.
    """
    radius = np.sqrt(-2 * np.log1p(-uniforms[..., 0::2]))
    angle = 2 * np.pi * uniforms[..., 1::2]
    normals = np.empty_like(uniforms)
    np.multiply(radius, np.cos(angle), out=normals[..., 0::2])
    np.multiply(radius, np.sin(angle), out=normals[..., 1::2])
    return normals
