"""From a scenario's `calibration` to what the simulator uses: a shipped name, a file, or inline affine costs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from .calibration import AffineCosts, Calibration, CalibrationFile, InlineAffine, RoundCosts, TableCosts
from .calibration_checks import calibration_findings
from .catalog import calibration_names, calibration_path
from .errors import InputError
from .source import MAX_CALIBRATION_BYTES, Finding, Source, decode, file_defect, read_bytes
from .validation import validated
from .wording import did_you_mean, listed, shown
from .yaml_text import parse_mapping

_ENDINGS = (".json", ".yaml", ".yml")


class OpenedCalibration(NamedTuple):
    """A calibration file as it is written, and as the simulator uses it."""

    path: Path
    stored: CalibrationFile
    used: Calibration


def load_calibration(reference: str | InlineAffine, source: Source, field: str = "calibration") -> Calibration:
    """The calibration that a scenario refers to at `field`; paths are relative to the scenario.

    Raises InputError: at `field` if there is none, in the calibration's own file for what is wrong there.
    """
    if isinstance(reference, InlineAffine):
        return _inline(reference)
    return open_calibration(reference, source, field).used


def open_calibration(reference: str, source: Source, field: str = "calibration") -> OpenedCalibration:
    """A shipped name or a file, with what it says of itself. Raises InputError as `load_calibration`."""
    path = calibration_path(reference)
    if path is None:
        path = _path(reference, source, field)
    content = read_bytes(path, MAX_CALIBRATION_BYTES)
    stored = _stored(content, path)
    return OpenedCalibration(path, stored, _used(stored, hashlib.sha256(content).hexdigest()))


def _costs(stored: CalibrationFile) -> AffineCosts | TableCosts | RoundCosts:
    if isinstance(stored.costs, AffineCosts):
        return AffineCosts(**stored.costs.model_dump(exclude={"form"}))
    return stored.costs


def _inline(reference: InlineAffine) -> Calibration:
    costs = AffineCosts(**{name: getattr(reference, name) for name in AffineCosts.model_fields})
    return Calibration(
        name="affine",
        kind="affine",
        costs=costs,
        num_gpu_blocks=reference.num_gpu_blocks,
        num_gpu_blocks_baseline=reference.num_gpu_blocks_baseline,
        async_scheduling=False,
    )


def _path(reference: str, source: Source, field: str) -> Path:
    """The file a reference names. A name without folder or ending is one of the catalog, which does not have it."""
    if "/" not in reference and "\\" not in reference and not reference.endswith(_ENDINGS):
        known = calibration_names()
        remedy = did_you_mean(reference, known, "name one of them, or the path of a file")
        what = f"unknown calibration {shown(reference)}"
        raise InputError([source.problem(Finding(field, what, f"shipped are {listed(known)}", remedy))])
    path = source.base_dir / reference
    defect = file_defect(path, MAX_CALIBRATION_BYTES)
    if defect:
        raise InputError([source.problem(Finding(field, *defect))])
    return path


def _stored(content: bytes, path: Path) -> CalibrationFile:
    own = parse_mapping(decode(content, str(path)), str(path), path.parent)
    stored, findings = validated(CalibrationFile, own.data)
    findings += calibration_findings(own.data)
    problems = own.problems + [own.problem(finding) for finding in findings]
    if stored is None or problems:
        raise InputError(problems)
    return stored


def _used(stored: CalibrationFile, sha256: str) -> Calibration:
    asynchronous = stored.async_scheduling
    if asynchronous is None:
        asynchronous = stored.kind != "imported" and "cpu" not in stored.hardware.gpu.lower()
    return Calibration(
        name=stored.name,
        kind=stored.kind,
        costs=_costs(stored),
        models=stored.models,
        memory=stored.memory,
        async_scheduling=asynchronous,
        fitted_range=stored.fitted_range,
        heldout=stored.heldout,
        sha256=sha256,
    )
