"""From the workload section of a scenario to the requests of one replication."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..formats.text_file import MAX_BYTES
from ..inputs.acceptance_models import Replay
from ..inputs.errors import InputError
from ..inputs.numbers import MAX_DURATION_S, MAX_REQUESTS
from ..inputs.scenario import (
    AtOnce,
    Closed,
    Empirical,
    Gamma,
    Length,
    Poisson,
    Slice,
    TraceArrivals,
    Workload,
)
from ..inputs.source import file_defect
from .arrivals import arrival_times_ms, arrivals_before_ms, no_arrivals
from .lengths import sample_lengths
from .log_sequences import check_log_files, replayed_lengths
from .problem_at import ProblemAt, without_position
from .requests import Requests
from .streams import Stream, generator
from .trace_rows import trace_rows

Ints = NDArray[np.int64]


def build_requests(
    workload: Workload,
    base_dir: Path,
    seed: int,
    replication: int,
    problem: ProblemAt = without_position,
) -> Requests:
    """Requests in the order in which they are sent.

    Each source of chance has its own stream and each slice its own substream: an arm that states other lengths in one
    slice keeps the arrivals, the slices and every other length, and the first n requests are the same for every n. A
    trace is the same in every replication, only the slices of its rows, the spread of its bursts (`clock_ticks`) and
    arrivals by `rate` are drawn anew. Closed arrivals with `duration_s` need `requests` too: how many there are is for
    the engine to find out, see `send_until_ms`. Paths are relative to `base_dir`. Raises InputError.
    """
    _check_length_files(workload, base_dir, problem)
    check_log_files(workload.slices, base_dir, problem)
    arrivals = workload.arrivals
    if isinstance(arrivals, TraceArrivals):
        arrival_ms, trace = trace_rows(workload, arrivals, base_dir, seed, replication, problem)
        prompt_tokens, output_tokens = trace.prompt_tokens, trace.output_tokens
        hashes = trace.hash_offsets, trace.hash_ids, trace.hash_block_tokens
        slice_index = _draw_slices(workload.slices, len(trace), seed, replication)
    else:
        arrival_ms = _arrivals(workload, arrivals, seed, replication, problem)
        hashes = None, None, None
        slice_index = _draw_slices(workload.slices, len(arrival_ms), seed, replication)
        prompts = [part.prompt_tokens for part in workload.slices]
        outputs = [_output_lengths(part) for part in workload.slices]
        prompt_tokens = _draw_lengths(prompts, slice_index, base_dir, seed, replication, Stream.PROMPT_TOKENS)
        output_tokens = _draw_lengths(outputs, slice_index, base_dir, seed, replication, Stream.OUTPUT_TOKENS)
    if not arrival_ms[-1] <= MAX_DURATION_S * 1000:
        what, rule = f"the last request arrives after {arrival_ms[-1] / 1000:.3g} s", f"at most {MAX_DURATION_S:.0e} s"
        raise InputError([problem("workload.arrivals", what, rule, "raise the rate or the scale")])
    hits = np.array([part.prefix_hit_tokens for part in workload.slices], dtype=np.int64)[slice_index]
    closed = arrivals if isinstance(arrivals, Closed) else None
    priorities = _of_slices([part.priority for part in workload.slices], slice_index)
    shared = _of_slices([part.shared_prefix_tokens for part in workload.slices], slice_index)
    return Requests(
        arrival_ms,
        prompt_tokens,
        output_tokens,
        slice_index,
        np.minimum(hits, prompt_tokens - 1),  # an engine computes at least the last prompt token
        closed.concurrency if closed else None,
        closed.think_time_s * 1000 if closed else 0.0,
        *hashes,
        workload.duration_s * 1000 if closed and workload.duration_s is not None else None,
        priority=priorities,
        shared_prefix_tokens=None if shared is None else np.minimum(shared, prompt_tokens),
    )


def _of_slices(values: Sequence[int], slice_index: Ints) -> Ints | None:
    """Each request's value by its slice; None where all are 0."""
    return np.array(values, dtype=np.int64)[slice_index] if any(values) else None


def _arrivals(
    workload: Workload, arrivals: AtOnce | Closed | Poisson | Gamma, seed: int, replication: int, problem: ProblemAt
) -> NDArray[np.float64]:
    """Arrivals that come from no trace: `requests` of them, or those of `duration_s`."""
    rng = generator(seed, replication, Stream.ARRIVALS)
    if workload.requests is not None:
        return arrival_times_ms(arrivals, workload.requests, rng)
    assert workload.duration_s is not None  # the scenario's checks see to it, and to open arrivals
    assert isinstance(arrivals, Poisson | Gamma)
    times = arrivals_before_ms(arrivals, workload.duration_s * 1000, MAX_REQUESTS, rng)
    if len(times) > MAX_REQUESTS:
        what, rule = "too many requests arrive in that time", f"at most {MAX_REQUESTS}"
        raise InputError([problem("workload.duration_s", what, rule, "give a shorter time or a lower rate or cv")])
    if not len(times):
        raise InputError([no_arrivals(workload.duration_s, replication, problem)])
    return times


def _check_length_files(workload: Workload, base_dir: Path, problem: ProblemAt) -> None:
    problems = []
    for index, part in enumerate(workload.slices):
        for name, length in (("prompt_tokens", part.prompt_tokens), ("output_tokens", part.output_tokens)):
            if isinstance(length, Empirical) and (defect := file_defect(base_dir / length.path, MAX_BYTES)):
                problems.append(problem(f"workload.slices.{index}.{name}.path", *defect))
    if problems:
        raise InputError(problems)


def _draw_slices(slices: Sequence[Slice], count: int, seed: int, replication: int) -> Ints:
    """Each request's slice, by share."""
    bounds = np.cumsum([part.share for part in slices])
    uniforms = generator(seed, replication, Stream.SLICES).random(count)
    return np.searchsorted(bounds / bounds[-1], uniforms, side="right").astype(np.int64)


def _output_lengths(part: Slice) -> Length | Replay | None:
    """Where a slice's output lengths come from: a replayed log brings its own where none are stated."""
    if part.output_tokens is None and isinstance(part.acceptance, Replay):
        return part.acceptance
    return part.output_tokens


def _draw_lengths(
    lengths: Sequence[Length | Replay | None],
    slice_index: Ints,
    base_dir: Path,
    seed: int,
    replication: int,
    stream: Stream,
) -> Ints:
    """Every request's length, from its own slice. Each slice draws for all requests, so that no slice moves another."""
    tokens = np.ones(len(slice_index), dtype=np.int64)
    for index, length in enumerate(lengths):
        rows = np.flatnonzero(slice_index == index)
        assert length is not None
        if len(rows):
            count = int(rows[-1]) + 1
            if isinstance(length, Replay):
                drawn = replayed_lengths(length, count, index, base_dir, seed, replication)
            else:
                drawn = sample_lengths(length, count, generator(seed, replication, stream, index), base_dir)
            tokens[rows] = drawn[rows]
    return tokens
