"""Uniform draws that belong to a request and an output position, whatever else is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..workload.streams import Stream, generator
from .law import Floats

_STRIDE = 0x9E3779B97F4A7C15  # draws between two requests' starts: far more than positions, and odd
_PERIOD = 1 << 128


def position_uniforms(
    seed: int, replication: int, stream: Stream, requests: NDArray[np.int64], positions: NDArray[np.int64]
) -> Floats:
    """Row j holds draws 0 .. positions[j] - 1 of request requests[j], padded with zeros to the longest row.

    Draw p of request r is number r * stride + p of the stream: other lengths, slices or arms move none of them.
    """
    rng = generator(seed, replication, stream)
    bits = rng.bit_generator
    assert isinstance(bits, np.random.PCG64)
    uniforms = np.zeros((len(requests), int(positions.max())))
    drawn = 0
    for row, request, count in zip(uniforms, requests.tolist(), positions.tolist(), strict=True):
        start = request * _STRIDE
        bits.advance((start - drawn) % _PERIOD)
        rng.random(out=row[:count])
        drawn = start + count
    return uniforms
