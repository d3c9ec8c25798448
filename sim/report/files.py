"""The files of a run: result.json, and per arm requests-ARM.csv and steps-ARM.csv."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote

from ..inputs.errors import InputError, Problem
from .json_text import json_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..answers.run import ArmTables, RunResult
    from .record_columns import Columns

NewFile = Callable[[str], TextIO]
ROWS_AT_ONCE = 16_384  # bounds the memory that the text of a column takes


def write_run(result: RunResult, directory: Path) -> None:
    """Write all files of a run. Every file appears whole or not at all, result.json last.

    CSV: one header line, units in the names, an empty field where there is no value. Arm names are percent-encoded in
    file names. Raises InputError if the directory cannot be made or written.
    """
    make_directory(directory)
    names = [part["name"] for part in result.document["scenario"]["workload"]["slices"]]
    try:
        with _replaced_together(directory) as new:
            for arm in dict.fromkeys(table.name for table in result.tables):
                tables = [table for table in result.tables if table.name == arm]
                with new(f"requests-{quote(arm, safe='')}.csv") as file:
                    _write_csv(file, _request_parts(tables, names))
                with new(f"steps-{quote(arm, safe='')}.csv") as file:
                    _write_csv(file, _step_parts(tables))
            with new("result.json") as file:
                file.write(json_text(result.document))
    except OSError as error:
        raise InputError([_unwritable(directory, error)]) from error


def make_directory(directory: Path) -> None:
    """Create the directory if need be and make sure that files can be written there, before any work is done."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".specsim-{os.getpid()}.tmp"
        probe.touch()
        probe.unlink()
    except (OSError, ValueError) as error:
        raise InputError([_unwritable(directory, error)]) from error


def write_document(document: dict[str, Any], path: Path) -> None:
    """A result document as one file, which appears whole or not at all. Raises InputError if it cannot be written."""
    write_bytes(json_text(document).encode(), path)


def write_bytes(content: bytes, path: Path) -> None:
    """The same for any content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError([_unwritable(path, error)]) from error
    finally:
        temporary.unlink(missing_ok=True)


def _unwritable(directory: Path, error: OSError | ValueError) -> Problem:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    what = "is a file" if os.path.isfile(directory) else f"cannot be written ({reason})"
    rule, remedy = "--out must be a directory that can be written", "give another path"
    return Problem(str(directory), 1, 1, "--out", what, rule, remedy)


@contextmanager
def _replaced_together(directory: Path) -> Iterator[NewFile]:
    """Files that are written beside their targets and moved over them in order, once all of them are complete."""
    targets: dict[Path, Path] = {}

    def new(name: str) -> TextIO:
        temporary = directory / f".{name}.{os.getpid()}.tmp"
        targets[temporary] = directory / name
        return temporary.open("w", encoding="utf-8", newline="")

    try:
        yield new
        for target in targets.values():
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{target.name} is a directory")
        for temporary, target in targets.items():
            os.replace(temporary, target)
        for stale in [*directory.glob("requests-*.csv"), *directory.glob("steps-*.csv")]:
            if stale not in targets.values():  # of an arm that the run before had
                stale.unlink()
    finally:
        for temporary in targets:
            temporary.unlink(missing_ok=True)


def _request_parts(tables: Sequence[ArmTables], slice_names: Sequence[str]) -> Iterator[Columns]:
    from .record_columns import request_columns

    for table in tables:
        yield request_columns(table.records, table.requests, table.replication, slice_names)


def _step_parts(tables: Sequence[ArmTables]) -> Iterator[Columns]:
    from .record_columns import step_columns

    for table in tables:
        for replica, steps in enumerate(table.records.steps):
            yield step_columns(steps, table.replication, replica)


def _write_csv(file: TextIO, parts: Iterable[Columns]) -> None:
    for number, columns in enumerate(parts):
        if number == 0:
            file.write(",".join(columns) + "\n")
        # One pattern for whole rows takes half the time of csv.writer.
        pattern = ",".join("%d" if column.dtype.kind == "i" else "%s" for column in columns.values()) + "\n"
        rows = min(len(column) for column in columns.values())
        for start in range(0, rows, ROWS_AT_ONCE):
            window = slice(start, start + ROWS_AT_ONCE)
            cells = [_cells(column[window]) for column in columns.values()]
            file.write("".join([pattern % row for row in zip(*cells, strict=True)]))


def _cells(column: NDArray[Any]) -> list[Any]:
    """Python numbers, which print in full, an empty field in place of NaN, and names in quotes where they need them."""
    cells: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        return ["" if cell != cell else cell for cell in cells]
    return [_quoted(cell) for cell in cells] if column.dtype.kind == "O" else cells


def _quoted(name: str) -> str:
    if any(sign in name for sign in ',"\r\n'):
        return '"' + name.replace('"', '""') + '"'
    return name
