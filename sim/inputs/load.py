"""Load a scenario: text, overrides, checks, calibrations; every mistake of all of them is told at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from .arm_checks import is_lossy
from .calibration import Calibration, InlineAffine
from .calibration_checks import other_model_findings
from .catalog import scenario_names, scenario_path
from .checks import scenario_findings
from .errors import InputError, Problem
from .load_calibration import load_calibration
from .overrides import apply_sets
from .scenario import CalibrationReference, Scenario
from .source import MAX_SCENARIO_BYTES, Finding, Source, decode, read_bytes
from .yaml_text import parse_mapping

QUICKSTART = "quickstart"
RESULT_SCHEMA = "specsim-result/1"
MOST_PROBLEMS = 100
_REFERENCE: TypeAdapter[str | InlineAffine] = TypeAdapter(CalibrationReference)


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A checked scenario with the places of its keys, and the calibrations it refers to.

    calibrations: by the path of the reference, `calibration` or `arms.NAME.calibration`.
    """

    scenario: Scenario
    source: Source
    calibrations: Mapping[str, Calibration]

    @property
    def file(self) -> str:
        """The file as the user named it."""
        return self.source.file

    @property
    def base_dir(self) -> Path:
        """The folder where relative paths start."""
        return self.source.base_dir

    @property
    def data(self) -> dict[str, Any]:
        """The scenario as plain data, overrides applied."""
        return self.source.data

    def problem(self, field_path: str, what: str, rule: str, remedy: str) -> Problem:
        """A problem at a dotted path (`workload.slices.0.prompt_tokens`), for what is found after loading."""
        return self.source.problem(Finding(field_path, what, rule, remedy))


def load_scenario(path: Path | None, sets: Sequence[str] = ()) -> LoadedScenario:
    """A scenario with `--set` overrides: a file, an earlier result whose scenario is taken, or a shipped name.

    None is the quickstart; a file wins over a shipped scenario of the same name. Raises InputError with every mistake
    that can be found without running it.
    """
    source = apply_sets(_scenario_source(_located(path)), sets)
    problems = [source.problem(finding) for finding in scenario_findings(source.data)]
    calibrations: dict[str, Calibration] = {}
    for field, reference in _references(source.data):
        try:
            calibrations[field] = load_calibration(reference, source, field)
        except InputError as error:
            problems.extend(error.problems)
    if not is_lossy(source.data):
        problems += [source.problem(finding) for finding in other_model_findings(calibrations)]
    every = _told_once(source.problems, problems)
    if every:
        raise InputError(every)
    return LoadedScenario(Scenario.model_validate(source.data), source, calibrations)


def _located(path: Path | None) -> Path:
    if path is None:
        return _shipped(QUICKSTART)
    is_name = path.name == str(path) and not path.suffix
    return _shipped(path.name) if is_name and not os.path.lexists(path) else path


def _shipped(name: str) -> Path:
    path = scenario_path(name)
    if path is None:
        what = f"the scenario {name!r} is not shipped"
        rule = f"shipped are {', '.join(scenario_names()) or 'none'}"
        raise InputError([Problem(name, 1, 1, "file", what, rule, "name a scenario file")])
    return path


def _scenario_source(path: Path) -> Source:
    content = read_bytes(path, MAX_SCENARIO_BYTES)
    source = parse_mapping(decode(content, str(path)), str(path), path.parent)
    schema = source.data.get("schema")
    if not isinstance(schema, str) or not schema.startswith("specsim-"):
        return source
    if schema == RESULT_SCHEMA and isinstance(source.data.get("scenario"), dict):
        return _member(source, "scenario")
    what = f"has the schema {schema!r}"
    remedy = "name the scenario file"
    finding = Finding("schema", what, f"a scenario has none, a result {RESULT_SCHEMA!r} and a scenario", remedy)
    raise InputError([source.problem(finding)])


def _member(source: Source, key: str) -> Source:
    """One member of the mapping as a source of its own, at its place in the same file."""
    start = len(key) + 1
    marks = {path[start:]: mark for path, mark in source.marks.items() if path.startswith(f"{key}.")}
    keys = {path[start:]: mark for path, mark in source.keys.items() if path.startswith(f"{key}.")}
    return Source(source.file, source.base_dir, source.data[key], marks, keys, source.problems)


def _references(data: Mapping[str, Any]) -> list[tuple[str, str | InlineAffine]]:
    """Every valid reference to a calibration, with its path."""
    arms = data.get("arms")
    arms = arms if isinstance(arms, dict) else {}
    raw = {"calibration": data.get("calibration")}
    raw |= {f"arms.{name}.calibration": arm.get("calibration") for name, arm in arms.items() if isinstance(arm, dict)}
    found = []
    for field, reference in raw.items():
        try:
            found.append((field, _REFERENCE.validate_python(reference)))
        except ValidationError:
            continue
    return found


def _told_once(of_text: Sequence[Problem], of_data: Sequence[Problem]) -> list[Problem]:
    """All problems in order, without what follows from a mistake in the text at the same place; at most a hundred."""
    places = {(problem.file, problem.line, problem.column) for problem in of_text}
    rest = [problem for problem in of_data if (problem.file, problem.line, problem.column) not in places]
    every = sorted({*of_text, *rest})
    if len(every) <= MOST_PROBLEMS:
        return every
    last = every[MOST_PROBLEMS]
    rule = f"the first {MOST_PROBLEMS} are shown"
    more = Problem(last.file, last.line, last.column, "file", "more problems follow", rule, "mend these first")
    return [*every[:MOST_PROBLEMS], more]
