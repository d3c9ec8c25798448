"""Calibrations, acceptance profiles and scenarios that are shipped: in the wheel as data, else beside the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def calibration_names() -> list[str]:
    """Names of the shipped calibrations, sorted."""
    return sorted(_files("calibrations", (".json",)))


def scenario_names() -> list[str]:
    """Names of the shipped scenarios, sorted."""
    return sorted(_files("scenarios", (".yaml", ".yml")))


def calibration_path(name: str) -> Path | None:
    """The file of a shipped calibration, or None if there is none of that name."""
    return _files("calibrations", (".json",)).get(name)


def scenario_path(name: str) -> Path | None:
    """The file of a shipped scenario, or None if there is none of that name."""
    return _files("scenarios", (".yaml", ".yml")).get(name)


def profile_names() -> list[str]:
    """Names of the shipped acceptance profiles, sorted."""
    return sorted(_files("calibrations/acceptance", (".json",)))


def profile_path(name: str) -> Path | None:
    """The file of a shipped acceptance profile, or None if there is none of that name."""
    return _files("calibrations/acceptance", (".json",)).get(name)


def _files(folder: str, endings: tuple[str, ...]) -> dict[str, Path]:
    for place in (_PACKAGE / "data" / folder, _PACKAGE.parent / folder):
        if place.is_dir():
            return {path.stem: path for path in sorted(place.iterdir()) if path.suffix in endings and path.is_file()}
    return {}
