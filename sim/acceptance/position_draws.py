"""Uniform draws that belong to a request and an output position, whatever else is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..workload.streams import Stream, generator
from .law import Floats

_STRIDE = 0x9E3779B97F4A7C15  # draws between two requests' starts: far more than positions, and odd
_PERIOD = 1 << 128
_BLOCK_POSITIONS = 1 << 20  # positions worked on at a time: a few arrays of 8 MB


def position_uniforms(
    seed: int, replication: int, stream: Stream, requests: NDArray[np.int64], positions: NDArray[np.int64]
) -> Floats:
    """Row j holds draws 0 .. positions[j] - 1 of request requests[j], padded with zeros to the longest row.

    Draw p of request r is number r * stride + p of the stream: other lengths, slices or arms move none of them.
    """
    uniforms = np.zeros((len(requests), int(positions.max())))
    _draw(seed, replication, stream, requests, (row[:count] for row, count in zip(uniforms, positions, strict=True)))
    return uniforms


def flat_uniforms(
    seed: int, replication: int, stream: Stream, requests: NDArray[np.int64], positions: NDArray[np.int64]
) -> Floats:
    """The same draws without padding, one request after another."""
    ends = np.cumsum(positions)
    uniforms = np.zeros(int(ends[-1]) if len(ends) else 0)
    _draw(seed, replication, stream, requests, np.split(uniforms, ends[:-1]))
    return uniforms


def request_blocks(positions: NDArray[np.int64]) -> Iterator[slice]:
    """Requests in order, as many at a time as hold about a million positions (a longer one stands alone)."""
    ends = np.cumsum(positions)
    first = 0
    while first < len(positions):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _BLOCK_POSITIONS, side="right")))
        yield slice(first, last)
        first = last


def _draw(seed: int, replication: int, stream: Stream, requests: NDArray[np.int64], parts: Iterable[Floats]) -> None:
    """Fill each request's part with its draws, from the first on."""
    rng = generator(seed, replication, stream)
    bits = rng.bit_generator
    assert isinstance(bits, np.random.PCG64)
    drawn = 0
    for part, request in zip(parts, requests.tolist(), strict=False):
        start = request * _STRIDE
        bits.advance((start - drawn) % _PERIOD)
        rng.random(out=part)
        drawn = start + len(part)
