"""Events of the Chrome trace event format as text, one line each; ui.perfetto.dev and chrome://tracing open it.

Durations are pairs of a begin and an end event and not events with a length: viewers round time and length apart, and
drop a slice that seems to reach beyond its parent. Times are us with six digits after the point and no exponent, which
some readers do not know.
"""

from __future__ import annotations

import json
from typing import Any

Arguments = dict[str, Any]
_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def begin(name: str, pid: int, tid: int, ms: float, arguments: Arguments | None = None) -> str:
    """A slice opens on a thread."""
    return f'{{"ph":"B","name":{_json(name)},{_place(pid, tid, ms)}{_with(arguments)}}}'


def end(pid: int, tid: int, ms: float) -> str:
    """The slice that was opened last on this thread closes."""
    return f'{{"ph":"E",{_place(pid, tid, ms)}}}'


def instant(name: str, pid: int, tid: int, ms: float, arguments: Arguments | None = None) -> str:
    """A moment on a thread."""
    return f'{{"ph":"i","s":"t","name":{_json(name)},{_place(pid, tid, ms)}{_with(arguments)}}}'


def process_instant(name: str, pid: int, ms: float, arguments: Arguments | None = None) -> str:
    """A moment of a whole process."""
    return f'{{"ph":"i","s":"p","name":{_json(name)},{_place(pid, pid, ms)}{_with(arguments)}}}'


def counter(name: str, pid: int, ms: float, series: Arguments) -> str:
    """New values of a counter track; they hold until the next ones. A track is called `name key` where it is shown."""
    return f'{{"ph":"C","name":{_json(name)},{_place(pid, pid, ms)}{_with(series)}}}'


def process(pid: int, name: str) -> list[str]:
    """Name of a process, and its place among the others."""
    return [_metadata("process_name", pid, pid, {"name": name}), _metadata("process_sort_index", pid, pid, _sort(pid))]


def thread(pid: int, tid: int, name: str) -> list[str]:
    """Name of a thread, and its place: in the order of their ids."""
    return [_metadata("thread_name", pid, tid, {"name": name}), _metadata("thread_sort_index", pid, tid, _sort(tid))]


def _sort(index: int) -> Arguments:
    return {"sort_index": index}


def _metadata(name: str, pid: int, tid: int, arguments: Arguments) -> str:
    return f'{{"ph":"M","name":"{name}","pid":{pid},"tid":{tid}{_with(arguments)}}}'


def _place(pid: int, tid: int, ms: float) -> str:
    return f'"pid":{pid},"tid":{tid},"ts":{ms * 1000.0:.6f}'


def _with(arguments: Arguments | None) -> str:
    if not arguments:
        return ""
    return f',"args":{_json(arguments)}'
