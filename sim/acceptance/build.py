"""Accepted runs of all requests of one replication, the same for every arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..inputs.acceptance_models import Acceptance, Replay
from ..workload.requests import Requests
from ..workload.streams import Stream, generator
from .compile import law_of
from .counts import count_accepted
from .law import AcceptanceLaw, Floats, hardness_of
from .logit_memory import normals_from_uniforms, stationary_states
from .ngram_runs import NgramDraws, NgramLaw, ngram_runs
from .position_draws import flat_uniforms, position_uniforms, request_blocks
from .replay import ALWAYS_K, replay_runs
from .runs import AcceptanceRuns

Ints = NDArray[np.int64]
_BLOCK_POSITIONS = 1 << 20  # positions worked on at a time: a few arrays of 8 MB


def build_runs(
    requests: Requests,
    acceptance: Sequence[Acceptance | None],
    depth: int,
    seed: int,
    replication: int,
    base_dir: Path = Path(),
) -> AcceptanceRuns:
    """How many draft tokens in a row would be accepted at every output position, up to `depth`.

    acceptance: one entry per slice; None accepts nothing. Files start at base_dir. One uniform belongs to each request
    and output position, one normal to each request (its shift of the logit) and one to each request and position
    (memory); the accepted run is the number of survival probabilities above the uniform. So min(runs, k) does not
    depend on `depth`, and no slice, length or arm moves the draws of another request.
    """
    lengths = requests.output_tokens
    ends = np.cumsum(lengths).astype(np.int64)
    target = _Runs(ends - lengths, np.zeros(int(ends[-1]), dtype=np.uint8))
    effects = generator(seed, replication, Stream.REQUEST_EFFECT).standard_normal(len(requests))
    for index, model in enumerate(acceptance):
        rows = np.flatnonzero(requests.slice_index == index)
        if isinstance(model, Replay):
            replayed = replay_runs(model, requests, index, depth, base_dir, seed, replication)
            target.put(rows, lengths, replayed.accepted, replayed.drafted)
            target.measured.append(replayed.measured_depth)
            continue
        law = None if model is None else law_of(model, base_dir)
        if law is None:
            continue
        target.measured.append(law.measured_depth)
        if isinstance(law, NgramLaw):
            _put_lookup(target, law, rows, lengths, effects, depth, seed, replication)
        else:
            _put_chain(target, law, rows, lengths, effects, depth, seed, replication)
    measured = [deepest for deepest in target.measured if deepest is not None]
    return AcceptanceRuns(target.offsets, target.accepted, target.drafted, depth, min(measured, default=None))


@dataclass(slots=True)
class _Runs:
    """The arrays being filled; `drafted` comes into being with the first slice whose drafter proposes fewer than k."""

    offsets: Ints
    accepted: NDArray[np.uint8]
    drafted: NDArray[np.uint8] | None = None
    measured: list[int | None] = field(default_factory=list)

    def put(self, rows: Ints, lengths: Ints, accepted: NDArray[np.uint8], drafted: NDArray[np.uint8] | None) -> None:
        """Runs of some requests, one after another, to their places."""
        counts = lengths[rows]
        ends = np.cumsum(counts)
        places = np.repeat(self.offsets[rows] - (ends - counts), counts) + np.arange(len(accepted))
        self.accepted[places] = accepted
        if drafted is not None:
            if self.drafted is None:
                self.drafted = np.full(len(self.accepted), ALWAYS_K, dtype=np.uint8)
            self.drafted[places] = drafted


def _put_chain(
    target: _Runs,
    law: AcceptanceLaw,
    rows: Ints,
    lengths: Ints,
    effects: Floats,
    depth: int,
    seed: int,
    replication: int,
) -> None:
    for block in _blocks(rows, lengths):
        positions = lengths[block]
        uniforms = position_uniforms(seed, replication, Stream.ACCEPTANCE, block, positions)
        shift = law.shifts(effects[block], positions)[:, None]
        if law.memory_sd:
            shift = shift + _memory(law, depth, seed, replication, block, positions)
        counts = count_accepted(law, uniforms, hardness_of(shift), depth)
        for row, start, count in zip(counts, target.offsets[block].tolist(), positions.tolist(), strict=True):
            target.accepted[start : start + count] = row[:count]


def _put_lookup(
    target: _Runs, law: NgramLaw, rows: Ints, lengths: Ints, effects: Floats, depth: int, seed: int, replication: int
) -> None:
    for block in request_blocks(lengths[rows]):
        these = rows[block]
        counts = lengths[these]
        draws = NgramDraws(
            *(
                flat_uniforms(seed, replication, stream, these, counts)
                for stream in (Stream.ACCEPTANCE, Stream.NGRAM_RUN, Stream.NGRAM_LENGTH)
            )
        )
        hardness = hardness_of(law.sigma * effects[these])
        drafted, accepted = ngram_runs(law, draws, hardness, np.cumsum(counts) - counts, counts)
        target.put(these, lengths, np.minimum(accepted, depth).astype(np.uint8), drafted)


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
