"""Accepted runs of all requests of one replication, the same for every arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..inputs.scenario import Acceptance
from ..workload.requests import Requests
from ..workload.streams import Stream, generator
from .compile import compile_acceptance
from .law import AcceptanceLaw, Floats, hardness_of, probability
from .logit_memory import normals_from_uniforms, stationary_states
from .position_draws import position_uniforms
from .runs import AcceptanceRuns

Ints = NDArray[np.int64]
_BLOCK_POSITIONS = 1 << 20  # positions worked on at a time: a few arrays of 8 MB


def build_runs(
    requests: Requests, acceptance: Sequence[Acceptance | None], depth: int, seed: int, replication: int
) -> AcceptanceRuns:
    """How many draft tokens in a row would be accepted at every output position, up to `depth`.

    acceptance: one entry per slice; None accepts nothing. One uniform belongs to each request and output position, one
    normal to each request (its shift of the logit) and one to each request and position (memory); the accepted run is
    the number of survival probabilities above the uniform. So min(runs, k) does not depend on `depth`, and no slice,
    length or arm moves the draws of another request.
    """
    lengths = requests.output_tokens
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    accepted = np.zeros(offsets[-1], dtype=np.uint8)
    laws = [None if model is None else compile_acceptance(model) for model in acceptance]
    effects = generator(seed, replication, Stream.REQUEST_EFFECT).standard_normal(len(requests))
    for index, law in enumerate(laws):
        if law is None:
            continue
        for block in _blocks(np.flatnonzero(requests.slice_index == index), lengths):
            positions = lengths[block]
            uniforms = position_uniforms(seed, replication, Stream.ACCEPTANCE, block, positions)
            shift = law.shifts(effects[block], positions)[:, None]
            if law.memory_sd:
                shift = shift + _memory(law, depth, seed, replication, block, positions)
            counts = _count_accepted(law, uniforms, hardness_of(shift), depth)
            for row, start, count in zip(counts, offsets[block].tolist(), positions.tolist(), strict=True):
                accepted[start : start + count] = row[:count]
    measured = [law.measured_depth for law in laws if law is not None and law.measured_depth is not None]
    return AcceptanceRuns(offsets[:-1], accepted, None, depth, min(measured, default=None))


def no_acceptance(requests: Requests) -> AcceptanceRuns:
    """Nothing is ever drafted: all zeros, one byte of memory for all of them."""
    ends = np.cumsum(requests.output_tokens)
    zeros = np.broadcast_to(np.zeros(1, dtype=np.uint8), (int(ends[-1]),))
    return AcceptanceRuns(ends - requests.output_tokens, zeros, None, 1)


def _blocks(rows: Ints, lengths: Ints) -> Iterator[Ints]:
    """Requests in groups of similar length whose padded positions stay within a block (a longer one stands alone)."""
    ordered = rows[np.argsort(lengths[rows], kind="stable")]
    first = 0
    while first < len(ordered):
        ahead = lengths[ordered[first : first + _BLOCK_POSITIONS]]
        padded = ahead * np.arange(1, len(ahead) + 1)
        size = max(1, int(np.searchsorted(padded, _BLOCK_POSITIONS, side="right")))
        yield ordered[first : first + size]
        first += size


def _memory(law: AcceptanceLaw, depth: int, seed: int, replication: int, block: Ints, positions: Ints) -> Floats:
    """Logit states of a block, [request, position], `depth` positions past each output's end included."""
    even = (positions + depth + 1) // 2 * 2
    uniforms = position_uniforms(seed, replication, Stream.ACCEPTANCE_MEMORY, block, even)
    return stationary_states(normals_from_uniforms(uniforms), law.phi, law.memory_sd)


def _count_accepted(law: AcceptanceLaw, uniforms: Floats, hardness: Floats, depth: int) -> NDArray[np.uint8]:
    """Survival probabilities above the uniform of each position; hardness is [request, 1] or [request, position]."""
    width = uniforms.shape[1]
    survival = np.ones((1, 1))
    counts = np.zeros(uniforms.shape, dtype=np.uint8)
    for i in range(depth):
        here = hardness[:, i : i + width] if law.memory_sd else hardness
        survival = survival * probability(law.odds_at(i), here)
        counts += uniforms < survival
    return counts
