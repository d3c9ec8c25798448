"""The timeline of a run: the first replication of every arm as one file of Chrome trace events."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from ..analysis.request_spans import request_spans
from ..engine.records import Ints, Steps
from ..inputs.errors import InputError, Problem
from ..inputs.wording import one_line
from . import trace_events as events
from .timeline_requests import RequestEvents
from .timeline_steps import step_events

if TYPE_CHECKING:
    from ..answers.run import ArmTables, RunResult

WHOLE_RUN_S = (0.0, float("inf"))
REPLICATION = 0
EVENTS_AT_ONCE = 1000
COMPRESSION_LEVEL = 6  # the highest takes twice as long for a few percent
MUCH_FOR_A_VIEWER_BYTES = 300e6


@dataclass(slots=True)
class WrittenTimeline:
    """What a timeline file holds: steps, requests, and its bytes before compression."""

    steps: int = 0
    requests: int = 0
    text_bytes: int = 0

    def __str__(self) -> str:
        text = f"{self.steps:,} steps, {self.requests:,} requests, {self.text_bytes / 1e6:,.1f} MB of JSON"
        if self.text_bytes > MUCH_FOR_A_VIEWER_BYTES:
            return f"{text}, much for a viewer: --timeline-window FROM:TO writes a part"
        return f"{text}, opens in ui.perfetto.dev"


def check_timeline_file(path: str, files: Sequence[Path]) -> None:
    """Raises InputError where a timeline could not be written to `path`, or would replace one of `files`."""
    what = rule = ""
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            what, rule = "is no regular file", "--timeline makes a file or replaces one"
        elif target in [Path(os.path.realpath(one)) for one in files]:
            what, rule = "is a file that the run reads or writes itself", "it is never written over"
        else:
            probe = _beside(target)
            probe.touch()
            probe.unlink()
    except (OSError, ValueError) as error:
        raise InputError([_unwritable(path, error)]) from error
    if what:
        raise InputError([Problem(one_line(path), 1, 1, "--timeline", what, rule, "give another path")])


def write_timeline(result: RunResult, path: str, window_s: tuple[float, float] = WHOLE_RUN_S) -> WrittenTimeline:
    """Write the first replication of all arms, whole or not at all; compressed if the name ends in `.gz`.

    window_s: steps that run within it are written, requests are cut to it. Raises InputError if the file cannot be
    written or if the run has ended before the window begins.
    """
    tables = [table for table in result.tables if table.replication == REPLICATION]
    last_ms = max((float(steps.start_ms[-1] + steps.duration_ms[-1]) for steps in _all_steps(tables)), default=0.0)
    if window_s[0] > 0 and last_ms < 1000 * window_s[0]:
        what, rule = f"begins at {window_s[0]:g} s", f"the run ends at {last_ms / 1000:.6g} s"
        raise InputError([Problem("specsim run", 1, 1, "--timeline-window", what, rule, "take an earlier one")])
    written = WrittenTimeline()
    try:
        target = Path(os.path.realpath(path))
        temporary = _beside(target)
        try:
            with ExitStack() as stack:
                file: BinaryIO = stack.enter_context(temporary.open("wb"))
                if path.endswith(".gz"):
                    # No name and no time of writing inside: the same run gives the same bytes.
                    zipped = gzip.GzipFile("", "wb", COMPRESSION_LEVEL, file, mtime=0)
                    file = cast("BinaryIO", stack.enter_context(zipped))
                text = stack.enter_context(TextIOWrapper(file, encoding="ascii", newline="\n"))
                _write_text(text, result, tables, window_s, written)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError([_unwritable(path, error)]) from error
    return written


def _write_text(
    file: TextIOWrapper,
    result: RunResult,
    tables: Sequence[ArmTables],
    window_s: tuple[float, float],
    written: WrittenTimeline,
) -> None:
    document = result.document
    about = {"specsim_version": document["specsim_version"], "seed": document["seed"], "replication": REPLICATION}
    slice_names = [part["name"] for part in document["scenario"]["workload"]["slices"]]
    written.text_bytes += file.write('{"traceEvents":[')
    lines = _events(tables, slice_names, window_s, written)
    separator = "\n"
    while batch := list(islice(lines, EVENTS_AT_ONCE)):
        written.text_bytes += file.write(separator + ",\n".join(batch))
        separator = ",\n"
    # After the events: older viewers stop at the first key that they do not know.
    written.text_bytes += file.write(f'\n],"otherData":{json.dumps(about, allow_nan=False)}}}\n')


def _events(
    tables: Sequence[ArmTables], slice_names: Sequence[str], window_s: tuple[float, float], written: WrittenTimeline
) -> Iterator[str]:
    window_ms = (1000.0 * window_s[0], 1000.0 * window_s[1])
    # Thread ids are unique in the whole file: some viewers name threads by their id alone.
    stride = sum(len(table.records.steps) for table in tables) + 1
    pid = 0
    for table in tables:
        spans = request_spans(table.records)
        requests = RequestEvents(table.records, table.requests, spans, slice_names, window_ms)
        replicas = len(table.records.steps)
        for replica, steps in enumerate(table.records.steps):
            pid += 1
            chosen = _inside(steps, window_ms)
            written.steps += len(chosen)
            written.requests += len(requests.chosen(replica))
            yield from events.process(pid, table.name if replicas == 1 else f"{table.name}, replica {replica}")
            yield from events.thread(pid, pid, "steps")
            yield from step_events(steps, chosen, pid)
            yield from requests.of_replica(replica, pid, stride)


def _all_steps(tables: Sequence[ArmTables]) -> Iterator[Steps]:
    for table in tables:
        yield from (steps for steps in table.records.steps if len(steps))


def _inside(steps: Steps, window_ms: tuple[float, float]) -> Ints:
    inside = (steps.start_ms + steps.duration_ms >= window_ms[0]) & (steps.start_ms <= window_ms[1])
    return np.flatnonzero(inside)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")


def _unwritable(path: str, error: OSError | ValueError) -> Problem:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    what, rule = f"cannot be written ({reason})", "--timeline must be a file that can be written"
    return Problem(one_line(path), 1, 1, "--timeline", what, rule, "give another path")
