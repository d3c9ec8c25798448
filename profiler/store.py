"""Measured points as an append-only file: one JSON line each, so that a killed run loses at most the point it was at.

The first line is the header: which models, dtype and device. Points of another device or setup are refused, not merged.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from .errors import ProfileError
from .point import Point, point_key
from .setup import Setup, setup_of

SCHEMA = "specsim-points/1"
POINTS_FILE = "points.jsonl"
IDENTITY = ("kind", "name", "torch", "cuda", "backend", "threads")  # what a merged row must share with the header


@dataclass(slots=True)
class Row:
    """One point as it was measured. status: ok, oom, failed or skipped; sample: see `timing.Sample`."""

    key: str
    point: Point
    status: str
    sample: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """As its line in the file."""
        document = {"key": self.key, "status": self.status, "point": self.point.document()}
        return json.dumps(document | {"sample": self.sample, "extra": self.extra}, allow_nan=False) + "\n"


@dataclass(slots=True)
class Points:
    """The header and every row, in the order of the file. cut_bytes: how much of a torn last line was left out."""

    environment: dict[str, Any]
    setup: Setup
    rows: list[Row]
    cut_bytes: int = 0

    def ok(self, phase: str | None = None) -> Iterator[Row]:
        """Rows that have a time; of one phase where it is named."""
        return (row for row in self.rows if row.status == "ok" and phase in (None, row.point.phase))


def read_points(folder: Path) -> Points:
    """Read a results folder. A torn last line is left out; any other that is broken raises ProfileError."""
    path = folder / POINTS_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        rule = "points are read from a folder that `specsim profile run` wrote"
        remedy = "measure first, or check the path"
        raise ProfileError(str(path), "file", error.strerror or str(error), rule, remedy) from error
    whole, _, rest = content.rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    if not lines:
        raise ProfileError(f"{path}:1", "header", "is missing", "the first line says what was measured", "start anew")
    header = _json_line(path, 1, lines[0])
    if header.get("schema") != SCHEMA:
        what, rule = f"schema {header.get('schema')!r}", f"points are of {SCHEMA}"
        raise ProfileError(f"{path}:1", "schema", what, rule, "measure again with this version")
    try:
        environment, setup = header["environment"], setup_of(header["setup"])
    except (KeyError, TypeError) as error:
        rule = "the first line says what was measured"
        raise ProfileError(f"{path}:1", "header", f"lacks {error}", rule, "start anew") from error
    rows = [_row(path, number, line) for number, line in enumerate(lines[1:], 2)]
    return Points(environment, setup, rows, len(rest))


def _json_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        rule = "each line is one JSON object; only the last may be torn"
        raise ProfileError(
            f"{path}:{number}", "line", "is broken", rule, "remove the line: its point is measured again"
        )
    return data


def _row(path: Path, number: int, line: bytes) -> Row:
    data = _json_line(path, number, line)
    try:
        return Row(data["key"], Point(**data["point"]), data["status"], data["sample"], data["extra"])
    except (KeyError, TypeError) as error:
        rule = "a line holds key, status, point, sample and extra"
        raise ProfileError(f"{path}:{number}", "line", f"lacks {error}", rule, "remove the line") from error


class Store:
    """A results folder that is being written. One process at a time: a second is refused.

    retry_failed: points that have no time are not done; else whatever was attempted is.
    """

    def __init__(self, folder: Path, setup: Setup, environment: dict[str, Any], *, retry_failed: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / POINTS_FILE
        self.setup = setup
        self.digest = setup.digest()
        self._file = open(self.path, "ab")  # noqa: SIM115 (closed by __exit__)
        try:
            self._lock()
            self.rows = self._resume(folder, environment)
        except BaseException:
            self._file.close()
            raise
        if retry_failed:
            self.rows = [row for row in self.rows if row.status == "ok"]
        self.attempted = {row.key for row in self.rows}

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    def key(self, point: Point) -> str:
        """The key of a point in this folder."""
        return point_key(point, self.digest)

    def has(self, point: Point) -> bool:
        """Whether it was attempted: failures are rows too."""
        return self.key(point) in self.attempted

    def add(self, point: Point, status: str, sample: dict[str, Any], extra: dict[str, Any]) -> Row:
        """Write a row, whole, before the next point begins."""
        row = Row(self.key(point), point, status, sample, extra)
        self._append(row.line())
        self.rows.append(row)
        self.attempted.add(row.key)
        return row

    def _append(self, line: str) -> None:
        self._file.write(line.encode())
        self._file.flush()  # to the system: a killed process loses nothing of it

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            rule, remedy = "one run writes a folder", "wait for it or choose another --out"
            raise ProfileError(str(self.path), "file", "another run is writing it", rule, remedy) from error

    def _resume(self, folder: Path, environment: dict[str, Any]) -> list[Row]:
        content = self.path.read_bytes()
        if b"\n" not in content:  # new, or killed while its header was written
            self._file.truncate(0)
            header = {"schema": SCHEMA, "environment": environment, "setup": self.setup.document()}
            self._append(json.dumps(header, allow_nan=False) + "\n")
            return []
        points = read_points(folder)
        self._refuse_other(points, environment)
        if points.cut_bytes:
            self._file.truncate(len(content) - points.cut_bytes)
        return points.rows

    def _refuse_other(self, points: Points, environment: dict[str, Any]) -> None:
        place, rule = f"{self.path}:1", "points of one folder are of one machine and one pair of models"
        for name in IDENTITY:
            old, new = points.environment.get(name), environment.get(name)
            if old != new:
                what = f"the points there are of {old}, this is {new}"
                raise ProfileError(place, f"environment.{name}", what, rule, "choose another --out")
        if points.setup.digest() != self.digest:
            old_document, new_document = points.setup.document(), self.setup.document()
            differing = [key for key in new_document if key != "preset" and old_document.get(key) != new_document[key]]
            what = f"differs in {', '.join(differing)}"
            raise ProfileError(place, "setup", what, rule, "choose another --out, or the options of that run")
