import json
from pathlib import Path

import jsonschema
import pytest

from sim.inputs.scenario import Scenario
from sim.inputs.schema import scenario_schema, schema_text
from sim.inputs.yaml_text import parse_mapping

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = scenario_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
MINIMAL = {
    "calibration": "x",
    "workload": {
        "requests": 5,
        "arrivals": {"kind": "closed", "concurrency": 4},
        "slices": [{"name": "a", "prompt_tokens": 5, "output_tokens": {"kind": "geometric", "mean": 9}}],
    },
}


def keys_of(node):
    if isinstance(node, dict):
        yield from node
        for value in node.values():
            yield from keys_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from keys_of(value)


def test_it_is_a_draft_07_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert not {"prefixItems", "discriminator", "ge", "gt", "le", "lt"} & set(keys_of(SCHEMA))


def test_the_committed_schema_is_this_one():
    assert (ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.y*ml")), ids=lambda path: path.name)
def test_every_shipped_scenario_fits_it(path):
    VALIDATOR.validate(parse_mapping(path.read_text(encoding="utf-8"), path.name, path.parent).data)


def test_it_knows_every_key_of_a_scenario():
    assert set(SCHEMA["properties"]) == set(Scenario.model_fields)
    assert VALIDATOR.is_valid(MINIMAL)


@pytest.mark.parametrize(
    "change",
    [
        {"engin": {}},
        {"calibration": 5},
        {"run": {"seed": -1}},
        {"run": {"replications": 1001}},
        {"engine": {"gpu_memory_utilization": 0}},
        {"engine": {"block_size": 4097}},
        {"engine": {"watermark": 1}},
        {"speculation": {"method": "eagle", "num_speculative_tokens": 65}},
        {"slo": {"percentile": "median"}},
    ],
    ids=json.dumps,
)
def test_it_refuses_what_loading_refuses(change):
    assert not VALIDATOR.is_valid({**MINIMAL, **change})
