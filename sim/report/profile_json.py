"""An acceptance profile as the text of its file: JSON with one line for each key near the top."""

from __future__ import annotations

import json
from typing import Any

from ..inputs.profile import AcceptanceProfile

_LISTS_OF_WORDS = {"measured", "not_measured", "notes"}
_DEEPEST_EXPANDED = {"provenance": 1, "laws": 2}


def profile_json(profile: AcceptanceProfile) -> str:
    """The file's bytes as text, keys in the order of the schema; what is not given is left out."""
    return _mapping(profile.model_dump(by_alias=True, exclude_none=True), "", _DEEPEST_EXPANDED) + "\n"


def _mapping(data: dict[str, Any], indent: str, expanded: dict[str, int]) -> str:
    inner = indent + " "
    lines = [f"{inner}{json.dumps(key)}: {_value(key, value, inner, expanded)}" for key, value in data.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _value(key: str, value: Any, indent: str, expanded: dict[str, int]) -> str:
    levels = expanded.get(key, 0)
    if levels and isinstance(value, dict):
        return _mapping(value, indent, dict.fromkeys(value, levels - 1))
    if key in _LISTS_OF_WORDS and value:
        inner = indent + " "
        return "[\n" + ",\n".join(inner + json.dumps(line) for line in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, separators=(", ", ": "))
