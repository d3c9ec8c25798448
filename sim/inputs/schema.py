"""The JSON Schema of the scenario file, for editors: the same models that check a scenario, in draft-07 words."""

from __future__ import annotations

import json
from typing import Any

from .scenario import Scenario

DRAFT = "http://json-schema.org/draft-07/schema#"
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_DROPPED = ("title", "discriminator")


def scenario_schema() -> dict[str, Any]:
    """JSON Schema (draft-07) of a scenario. Rules across keys are not in it: `specsim run` checks those."""
    schema: dict[str, Any] = _plain(Scenario.model_json_schema())
    return {"$schema": DRAFT, **schema, "title": "specsim scenario"}


def schema_text() -> str:
    """The schema as it is committed and printed."""
    return json.dumps(scenario_schema(), indent=2) + "\n"


def _plain(node: Any) -> Any:
    """Bounds behind our own number types come out in pydantic's words; titles and OpenAPI keywords help no editor."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {_BOUNDS.get(key, key): _plain(value) for key, value in node.items() if key not in _DROPPED}
    if "properties" in node:  # its keys are the scenario's, not the schema's
        plain["properties"] = {name: _plain(value) for name, value in node["properties"].items()}
    return plain
