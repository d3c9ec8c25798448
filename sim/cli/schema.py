"""`specsim schema`: the JSON Schema of the scenario, for editors."""

from __future__ import annotations

import click


@click.command()
def schema() -> str:
    """Print the JSON Schema of the scenario file."""
    from ..inputs.schema import scenario_schema
    from ..report.json_text import json_text

    return json_text(scenario_schema())
