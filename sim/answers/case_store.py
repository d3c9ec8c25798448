"""The finished cases of sweeps in a folder: one JSON file each, named by content, whole or not there at all.

Several sweeps, and several machines, may share a folder: a case is the same whoever simulated it.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from ..inputs.errors import InputError, Problem
from ..inputs.load import RESULT_SCHEMA
from ..inputs.wording import one_line
from .replicate import ArmReplication
from .stored_replications import BASELINE_SCHEMA, replications_from, stored_replications


class CaseStore:
    """`DIR/cases/HASH.json`, results as `specsim run` prints them, and `DIR/baselines/HASH.json`."""

    def __init__(self, directory: Path) -> None:
        self._cases = directory / "cases"
        self._baselines = directory / "baselines"
        for folder in (self._cases, self._baselines):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _unwritable(folder, error) from error

    def case(self, name: str) -> dict[str, Any] | None:
        """The result of a case; None where there is none, or the file holds something else."""
        document = _read(self._cases / f"{name}.json")
        return document if document is not None and document.get("schema") == RESULT_SCHEMA else None

    def baseline(self, name: str) -> list[ArmReplication] | None:
        """The replications of a baseline, likewise."""
        document = _read(self._baselines / f"{name}.json")
        if document is None or document.get("schema") != BASELINE_SCHEMA:
            return None
        return replications_from(document)

    def keep_case(self, name: str, document: dict[str, Any]) -> None:
        """Put a case into the folder. Raises InputError if that fails."""
        _write(self._cases / f"{name}.json", document)

    def keep_baseline(self, name: str, replications: list[ArmReplication]) -> None:
        """Put a baseline into the folder, likewise."""
        _write(self._baselines / f"{name}.json", stored_replications(replications))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _write(path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, allow_nan=False, indent=2) + "\n"
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InputError:
    what = f"cannot be written ({error.strerror or error})"
    rule, remedy = "--out must be a directory that can be written", "give another path or make room"
    return InputError([Problem(one_line(str(path)), 1, 1, "--out", what, rule, remedy)])
