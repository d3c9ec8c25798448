"""A calibration as the text of its file: JSON with one line for each key near the top, so that changes can be read."""

from __future__ import annotations

import json
from typing import Any

from ..inputs.calibration import CalibrationFile

_EXPANDED = {"costs", "dense", "draft", "provenance"}  # their keys get lines of their own
_LISTS_OF_WORDS = {"measured", "not_measured", "notes"}


def calibration_json(calibration: CalibrationFile) -> str:
    """The file's bytes as text, keys in the order of the schema; what is not given is left out."""
    document = calibration.model_dump(by_alias=True, exclude_none=True)
    return _mapping(document, "") + "\n"


def _mapping(data: dict[str, Any], indent: str) -> str:
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_value(key, value, inner)}" for key, value in data.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _value(key: str, value: Any, indent: str) -> str:
    if key in _EXPANDED and isinstance(value, dict):
        return _mapping(value, indent)
    if key in _LISTS_OF_WORDS and value:
        inner = indent + " "
        return "[\n" + ",\n".join(inner + json.dumps(line) for line in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
