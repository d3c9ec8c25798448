"""Which sequence of a log each request replays, and how long its output then is."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..formats.acceptance_log import AcceptanceLog, LogSequence, read_acceptance_log
from ..formats.text_file import MAX_BYTES
from ..inputs.acceptance_models import Replay
from ..inputs.errors import InputError
from ..inputs.scenario import Slice
from ..inputs.source import file_defect
from ..inputs.wording import did_you_mean, listed, shown
from .problem_at import ProblemAt
from .streams import Stream, generator

Ints = NDArray[np.int64]


def replayed_log(replay: Replay, base_dir: Path) -> tuple[AcceptanceLog, list[LogSequence]]:
    """The log and its sequences of the task. Raises InputError for a broken file."""
    path = base_dir / replay.path
    status = path.stat()
    log = _read(path, status.st_mtime_ns, status.st_size)
    return log, log.of_task(replay.task)


def replayed_sequences(count: int, requests: int, slice_index: int, seed: int, replication: int) -> Ints:
    """The sequence of each request, drawn with replacement from `count`; entry i depends on the i-th draw alone."""
    uniforms = generator(seed, replication, Stream.LOG_SEQUENCE, slice_index).random(requests)
    return (uniforms * count).astype(np.int64)


def replayed_lengths(
    replay: Replay, requests: int, slice_index: int, base_dir: Path, seed: int, replication: int
) -> Ints:
    """Output tokens of the sequences that the requests replay."""
    log, sequences = replayed_log(replay, base_dir)
    lengths = np.array([one.output_tokens(by_position=log.by_position) for one in sequences], dtype=np.int64)
    return lengths[replayed_sequences(len(sequences), requests, slice_index, seed, replication)]


def check_log_files(slices: list[Slice], base_dir: Path, problem: ProblemAt) -> None:
    """Raises InputError for logs that are not there, cannot be read, or lack the task."""
    problems = []
    for index, part in enumerate(slices):
        replay, field = part.acceptance, f"workload.slices.{index}.acceptance"
        if not isinstance(replay, Replay):
            continue
        if defect := file_defect(base_dir / replay.path, MAX_BYTES):
            problems.append(problem(f"{field}.path", *defect))
            continue
        try:
            log, sequences = replayed_log(replay, base_dir)
        except InputError as error:
            problems.extend(error.problems)
            continue
        if not sequences:
            what, rule = f"the log has no category {shown(replay.task)}", f"it has {listed(log.categories) or 'none'}"
            remedy = did_you_mean(replay.task, log.categories, "name one of them, or leave it out")
            problems.append(problem(f"{field}.task", what, rule, remedy))
    if problems:
        raise InputError(problems)


@lru_cache(maxsize=8)
def _read(path: Path, _modified_ns: int, _size: int) -> AcceptanceLog:
    return read_acceptance_log(path)
