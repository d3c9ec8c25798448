"""A loaded scenario as plain data that runs again, from any folder: defaults filled in, paths made absolute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .catalog import calibration_path, profile_path
from .load import LoadedScenario


def resolved_scenario(loaded: LoadedScenario) -> dict[str, Any]:
    """The scenario for a result file: strict JSON values, without keys that are not set."""
    data: dict[str, Any] = loaded.scenario.model_dump(mode="json", exclude_none=True)
    base = loaded.base_dir.resolve()
    workload = data["workload"]
    _make_absolute(workload["arrivals"], "path", base)
    for part in [*workload["slices"], *data["arms"].values()]:
        for key in ("prompt_tokens", "output_tokens"):
            for length in (part.get(key), *_values(part.get(key))):
                _make_absolute(length, "path", base)
        for acceptance in (part.get("acceptance"), *_values(part.get("acceptance"))):
            _make_absolute(acceptance, "path", base)
            if isinstance(acceptance, dict) and profile_path(str(acceptance.get("name"))) is None:
                _make_absolute(acceptance, "name", base)
    for part in (data, *data["arms"].values()):
        if isinstance(part.get("calibration"), str) and calibration_path(part["calibration"]) is None:
            _make_absolute(part, "calibration", base)
    return data


def _values(by_slice: Any) -> list[Any]:
    return list(by_slice.values()) if isinstance(by_slice, dict) else []


def _make_absolute(part: Any, key: str, base: Path) -> None:
    if isinstance(part, dict) and isinstance(part.get(key), str):
        part[key] = str(base / part[key])
