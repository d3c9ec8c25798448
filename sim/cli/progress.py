"""How far a command is, on stderr, and only where a person watches it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int, str], None]


@contextmanager
def progress_on_stderr() -> Iterator[Report]:
    """Yields `report(done, total, label)`: a bar that vanishes at the end, or nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, label: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)


LINE_EVERY_S = 10.0


@contextmanager
def progress_with_time_left() -> Iterator[Report]:
    """For what may take hours: the bar, which tells the time left; a line now and then where stderr is no terminal."""
    if sys.stderr.isatty():
        with progress_on_stderr() as report:
            yield report
        return
    lines = _Lines()
    yield lines.report


class _Lines:
    """`cells: 12 of 81 done, 1:40 left`, by the pace of what was done here since the first report."""

    def __init__(self) -> None:
        self._label = ""
        self._begun, self._before, self._last = 0.0, 0, 0.0

    def report(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        if label != self._label:
            self._label, self._begun, self._before, self._last = label, now, done, now
        elif now - self._last >= LINE_EVERY_S and done > self._before:
            self._last = now
            left_s = round((now - self._begun) * (total - done) / (done - self._before))
            left = f"{left_s // 3600}:{left_s // 60 % 60:02}:{left_s % 60:02}"
            print(f"{label}: {done} of {total} done, {left} left", file=sys.stderr, flush=True)
