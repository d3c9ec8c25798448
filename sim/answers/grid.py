"""The cells of a sweep: each a whole scenario, checked before anything is simulated, and named by what is in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from .. import __version__
from ..inputs.calibration import Calibration
from ..inputs.errors import InputError, Problem
from ..inputs.load import MOST_PROBLEMS, LoadedScenario, load_scenario
from ..inputs.resolved import resolved_scenario
from ..inputs.scenario import Scenario
from ..inputs.source import Source
from ..inputs.vary import Axis, axis_mark
from .plan import ArmPlan, plan_run
from .typical_step import sampled_requests

HASH_DIGITS = 24
Report = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: plain data that any process can run.

    values: one per axis. sets: the overrides that make it from the scenario. case: hash of all that its result depends
    on; traffic: of what its baseline depends on.
    """

    values: tuple[Any, ...]
    sets: tuple[str, ...]
    data: dict[str, Any]
    file: str
    base_dir: Path
    calibrations: dict[str, Calibration]
    case: str
    traffic: str

    def loaded(self) -> LoadedScenario:
        """The scenario as `load_scenario` gives it, without the places of its keys."""
        source = Source(self.file, self.base_dir, self.data, {}, {})
        return LoadedScenario(Scenario.model_validate(self.data), source, self.calibrations)


def grid_cells(
    path: Path | None, sets: Sequence[str], axes: Sequence[Axis], report: Report | None = None
) -> list[Cell]:
    """Every cell, the last axis varying fastest. Raises InputError with the mistakes of all of them."""
    choices = list(product(*(axis.values for axis in axes)))
    known = _Known()
    cells: list[Cell] = []
    problems: dict[Problem, None] = {}
    for values in choices:
        own = [f"{axis.path}={json.dumps(value)}" for axis, value in zip(axes, values, strict=True)]
        try:
            cells.append(_cell(path, (*sets, *own), values, known))
        except InputError as error:
            marks = dict(zip((f"--set {text}"[:100] for text in own), map(axis_mark, axes), strict=True))
            problems |= dict.fromkeys(_of_axis(problem, marks) for problem in error.problems)
            if len(problems) >= MOST_PROBLEMS:
                break
        if report is not None:
            report(len(cells), len(choices), "checking")
    if problems:
        raise InputError(problems)
    return cells


class _Known:
    """What cells share: calibrations, digests of files, and traffic whose requests could be drawn."""

    def __init__(self) -> None:
        self.calibrations: dict[str, Calibration] = {}
        self.digests: dict[str, str] = {}
        self.traffic: set[str] = set()

    def calibration(self, one: Calibration) -> Calibration:
        return self.calibrations.setdefault(one.sha256 or one.model_dump_json(), one)

    def digest(self, file: str) -> str:
        if file not in self.digests:
            with open(file, "rb") as stream:
                self.digests[file] = hashlib.file_digest(stream, "sha256").hexdigest()
        return self.digests[file]


def _cell(path: Path | None, sets: tuple[str, ...], values: tuple[Any, ...], known: _Known) -> Cell:
    loaded = _with_fixed_replications(load_scenario(path, sets))
    arms = plan_run(loaded).arms
    calibrations = {field: known.calibration(one) for field, one in loaded.calibrations.items()}
    resolved = resolved_scenario(loaded)
    traffic = _traffic_hash(resolved, calibrations, known)
    if traffic not in known.traffic:
        _draw(loaded, arms)
        known.traffic.add(traffic)
    return Cell(
        values=values,
        sets=sets,
        data=loaded.data,
        file=loaded.file,
        base_dir=loaded.base_dir.resolve(),
        calibrations=calibrations,
        case=_hash(resolved, calibrations, known),
        traffic=traffic,
    )


def _with_fixed_replications(loaded: LoadedScenario) -> LoadedScenario:
    """Every cell has the same replications, so that all of them share their random numbers and baselines."""
    if loaded.scenario.run.precision is None:
        return loaded
    run = {key: value for key, value in loaded.data["run"].items() if key not in ("precision", "max_replications")}
    data = {**loaded.data, "run": run}
    return replace(loaded, scenario=Scenario.model_validate(data), source=replace(loaded.source, data=data))


def _draw(loaded: LoadedScenario, arms: Sequence[ArmPlan]) -> None:
    """Mistakes in files of lengths and traces show when requests are drawn."""
    sampled_requests(loaded, arms[0])


def _hash(resolved: dict[str, Any], calibrations: dict[str, Calibration], known: _Known) -> str:
    """Of a scenario, the contents of the files that it names, and the version."""
    content = {
        "version": __version__,
        "scenario": resolved,
        "calibrations": {field: one.sha256 for field, one in calibrations.items()},
        "files": {file: known.digest(file) for file in sorted(set(_files(resolved["workload"], resolved["arms"])))},
    }
    text = json.dumps(content, allow_nan=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def _traffic_hash(resolved: dict[str, Any], calibrations: dict[str, Calibration], known: _Known) -> str:
    """The hash of the scenario without speculation, and without what only speculation uses."""
    slices = [{key: part[key] for key in part if key != "acceptance"} for part in resolved["workload"]["slices"]]
    plain = {key: value for key, value in resolved.items() if key != "speculation"}
    plain["workload"] = {**resolved["workload"], "slices": slices}
    plain["arms"] = {name: arm for name, arm in resolved["arms"].items() if name == "baseline"}
    return _hash(plain, {field: one for field, one in calibrations.items() if field == "calibration"}, known)


def _files(*parts: Any) -> Iterator[str]:
    """The values of every key `path`."""
    for part in parts:
        if isinstance(part, dict):
            yield from (value for key, value in part.items() if key == "path" and isinstance(value, str))
            yield from _files(*part.values())
        elif isinstance(part, list):
            yield from _files(*part)


def _of_axis(problem: Problem, marks: dict[str, str]) -> Problem:
    """The user wrote `--vary`, not the `--set` that a cell is made with."""
    mark = marks.get(problem.file)
    return problem if mark is None else replace(problem, file=mark, column=1)
