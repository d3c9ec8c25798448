"""A file's text and where each of its keys stands: the ground on which every error message points.

Paths are dotted (`workload.slices.0.share`); `marks` knows values, `keys` knows the keys before them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .errors import InputError, Problem
from .wording import one_line, shown

MAX_SCENARIO_BYTES = 4_000_000
MAX_CALIBRATION_BYTES = 16_000_000


class Mark(NamedTuple):
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int


class Finding(NamedTuple):
    """A mistake in data, not placed yet: `field` is a dotted path; `at` is where it shows, if that is elsewhere."""

    field: str
    what: str
    rule: str
    remedy: str
    at_key: bool = False
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Plain data (mappings, lists, scalars) with the place of each part.

    base_dir: relative paths in the data start there. problems: mistakes of the text that still left data to check.
    """

    file: str
    base_dir: Path
    data: dict[str, Any]
    marks: Mapping[str, Mark]
    keys: Mapping[str, Mark]
    problems: list[Problem] = field(default_factory=list)

    def problem(self, finding: Finding) -> Problem:
        """The finding with its place; a path that is not in the file points at the nearest part around it."""
        around = finding.field if finding.at is None else finding.at
        mark = self.keys.get(around) if finding.at_key else None
        while mark is None:
            mark = self.marks.get(around) if around else Mark(self.file, 1, 1)
            around = around.rpartition(".")[0]
        return placed(mark, finding)


def placed(mark: Mark, finding: Finding) -> Problem:
    """A problem of one line, whatever the names in it hold."""
    words = (finding.field, finding.what, finding.rule, finding.remedy)
    return Problem(one_line(mark.file), mark.line, mark.column, *map(one_line, words))


def file_defect(path: Path, limit_bytes: int) -> tuple[str, str, str] | None:
    """What keeps a path from being read as an input file (what, rule, remedy), or None. Opens nothing, never blocks."""
    rule = "an input is a regular file that can be read"
    name = shown(os.fspath(path), 200)
    try:
        status = os.stat(path)
    except ValueError:
        return "the path holds a NUL character", rule, "correct the path"
    except OSError as error:
        return f"{error.strerror or error}: {name}", rule, "correct the path"
    if stat.S_ISDIR(status.st_mode):
        return f"{name} is a directory", rule, "name the file in it"
    if not stat.S_ISREG(status.st_mode):
        return f"{name} is a pipe or device", rule, "write it to a file first"
    if status.st_size > limit_bytes:
        return f"has {status.st_size} bytes", f"at most {limit_bytes} are read", "check that it is the right file"
    if not os.access(path, os.R_OK):
        return f"{name} may not be read", rule, "change its permissions"
    return None


def read_bytes(path: Path, limit_bytes: int) -> bytes:
    """The whole file. Raises InputError, positioned at the file's start, if it cannot be read."""
    defect = file_defect(path, limit_bytes)
    content = b""
    if defect is None:
        try:
            with path.open("rb") as stream:
                content = stream.read(limit_bytes + 1)
        except OSError as error:
            defect = str(error.strerror or error), "an input can be read", "check the file"
        if len(content) > limit_bytes:
            defect = f"has more than {limit_bytes} bytes", "no input is that large", "check that it is the right file"
    if defect is not None:
        raise InputError([placed(Mark(str(path), 1, 1), Finding("file", *defect))])
    return content


def decode(content: bytes, file: str) -> str:
    """UTF-8 text without a byte order mark. Raises InputError at the first byte that is not text."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        mark = Mark(file, before.count(b"\n") + 1, column)
        what = f"byte 0x{content[error.start]:02x} is not UTF-8 text"
        finding = Finding("file", what, "an input is UTF-8 text", "save the file as UTF-8")
        raise InputError([placed(mark, finding)]) from None
