"""What the distribution promises: its name, its command, its base dependencies and the data in the wheel."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower() for requirement in requirements}


def test_the_base_install_needs_no_torch_(pyproject):
    base = names(pyproject["project"]["dependencies"])
    assert base == {"simpy", "numpy", "scipy", "pydantic", "click", "rich", "pyyaml"}


def test_extras_are_the_documented_ones(pyproject):
    extras = set(pyproject["project"]["optional-dependencies"])
    assert extras == {"profile", "plot", "cluster", "parquet", "test", "lint"}


def test_the_command_exists(pyproject):
    module, _, name = pyproject["project"]["scripts"]["specsim"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_shipped_data_travels_in_the_wheel(pyproject):
    included = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"calibrations": "sim/data/calibrations", "scenarios": "sim/data/scenarios"}
    for folder in included:
        assert list((ROOT / folder).iterdir())


def test_version_is_in_the_changelog(pyproject):
    assert re.search(rf"\b{re.escape(pyproject['project']['version'])}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"))
