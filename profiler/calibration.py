"""A results folder as a calibration file: tables, memory, provenance, and the errors on what was not fitted."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.inputs.calibration import SCHEMA, CalibrationFile, TableCosts
from sim.inputs.calibration_checks import calibration_findings

from .check import live_fold
from .errors import ProfileError
from .fit import fit_costs
from .folds import Fold, drift_percent, folds
from .store import Points

OWN_FOLDS = ("additivity", "mixed", "chain", "interior")  # the first that was measured is the file's own error


def calibration_of(points: Points, name: str) -> CalibrationFile:
    """The calibration of the measured points. Raises ProfileError where a phase is missing or a time is impossible."""
    costs = fit_costs(points)
    errors = errors_of(points, costs)
    setup = points.setup
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": name,
        "kind": "analytic" if setup.device == "synthetic" else "measured",
        "provenance": _provenance(points, errors),
        "hardware": {"gpu": hardware_name(points.environment)},
        "models": {
            "target": setup.target.name,
            "draft": setup.draft.name if setup.draft else None,
            "dtype": setup.dtype,
        },
        "costs": costs.model_dump(),
        "memory": _memory(points),
        "async_scheduling": setup.device == "cuda",
        "fitted_range": {"max_decode_batch": max(costs.decode_attention.batch) if costs.decode_attention else None},
        "heldout": _heldout(errors),
    }
    document = {key: value for key, value in document.items() if value is not None}
    calibration = CalibrationFile.model_validate(document)
    for finding in calibration_findings(calibration.model_dump(by_alias=True, exclude_none=True)):
        remedy = "measure again on a quiet machine"
        raise ProfileError("specsim profile fit", finding.field, finding.what, finding.rule, remedy)
    return calibration


def calibration_name(points: Points) -> str:
    """From device, target and draft."""
    setup = points.setup
    draft = "" if setup.draft is None else "eagle" if setup.draft.fusion else setup.draft.name
    device = setup.device if setup.device != "cuda" else points.environment["name"].removeprefix("NVIDIA ")
    return "-".join("-".join(filter(None, (device, setup.target.name, draft, setup.dtype))).lower().split())


def checked_costs(points: Points, reference: str) -> tuple[TableCosts, TableCosts]:
    """The tables of a calibration, and those at the depth that was measured. Raises InputError, ProfileError.

    A calibration of other models or another device than the points is refused.
    """
    from sim.inputs.load_calibration import open_calibration
    from sim.inputs.source import Source

    opened = open_calibration(reference, Source("specsim profile check", Path(), {}, {}, {}))
    stored, costs = opened.stored, opened.used.costs
    rule, remedy = "a calibration is checked against points of its own device and models", "fit it from these points"
    if not isinstance(costs, TableCosts):
        raise ProfileError(str(opened.path), "costs", "is no table", "the profiler fits tables", remedy)
    own = {"hardware.gpu": hardware_name(points.environment), "models.target": points.setup.target.name}
    others = {"hardware.gpu": stored.hardware.gpu, "models.target": stored.models.target}
    for field, name in own.items():
        if others[field] != name:
            raise ProfileError(str(opened.path), field, f"{others[field]}, the points are of {name}", rule, remedy)
    depth = points.setup.depths[-1] if points.setup.depths else 0
    return costs, fit_costs(points, depth) if depth else costs


def errors_of(points: Points, costs: TableCosts) -> dict[str, Fold]:
    """Folds at the depth that was measured, the live loop among them."""
    depth = points.setup.depths[-1] if points.setup.depths else 0
    measured = fit_costs(points, depth) if depth else costs
    found = folds(points, measured, depth)
    live = live_fold(points, measured)
    return found | ({"live": live} if live else {})


def hardware_name(environment: Mapping[str, Any]) -> str:
    """A GPU by its name; a CPU is called one, with its cores and the threads that were used."""
    if environment["kind"] == "cpu":
        return f"CPU {environment['name']}, {environment['cores']} cores, {environment['threads']} threads"
    return str(environment["name"])


def _heldout(errors: Mapping[str, Fold]) -> dict[str, Any] | None:
    own = next((errors[name] for name in OWN_FOLDS if name in errors), None)
    if own is None:
        return None
    numbers = {name: {**fold._asdict()} for name, fold in errors.items()}
    for fold in numbers.values():
        del fold["worst"]
    return {
        "median_percent": own.median_percent,
        "p95_percent": own.p95_percent,
        "cells": own.cells,
        "folds": numbers,
    }


def _memory(points: Points) -> dict[str, float] | None:
    total = points.environment.get("memory_bytes")
    if not total:
        return None
    setup = points.setup
    draft = setup.draft
    return {
        "gpu_memory_bytes": float(total),
        "target_weight_bytes": setup.target.weight_bytes(setup.dtype),
        "draft_weight_bytes": draft.weight_bytes(setup.dtype) if draft else 0.0,
        "reserve_bytes": float(points.environment.get("reserve_bytes", 0.0)),
        "kv_bytes_per_token": float(setup.target.kv_bytes_per_token(setup.dtype)),
        "draft_kv_bytes_per_token": float(draft.kv_bytes_per_token(setup.dtype)) if draft else 0.0,
    }


def _provenance(points: Points, errors: Mapping[str, Fold]) -> dict[str, Any]:
    environment, setup = points.environment, points.setup
    known = ("torch", "cuda", "driver", "backend", "threads", "clock", "load_at_start", "machine")
    ran = ", ".join(f"{name} {environment[name]}" for name in known if environment.get(name) is not None)
    drift = drift_percent(points)
    notes = [
        "Random weights of the models' dims: times do not depend on what the weights say, acceptance is not measured.",
        "heldout is the sum of terms against whole rounds; all kinds of held-out points are under folds.",
        "Whole steps are in series: host, target, sampling, drafting; drafts are proposed by argmax.",
    ]
    if drift is not None:
        notes.append(f"Sentinels, the same pass measured through the run, range over {drift:.1f} % of their median.")
    noisy = sum(bool(row.sample.get("noisy")) for row in points.ok())
    notes.append(f"{noisy} of {sum(1 for _ in points.ok())} points are noisy: single calls spread by more than 10 %.")
    if setup.device == "cpu":
        notes.append("Measured on a CPU, which shows how the method works: it says nothing about any GPU.")
        notes.append("memory: the machine's own RAM.")
    lost = [row for row in points.rows if row.status != "ok"]
    if lost:
        notes.append(f"{len(lost)} points have no time: " + ", ".join(sorted({row.status for row in lost})) + ".")
    not_measured = [
        "What a serving engine's own scheduler takes: host is this loop's bookkeeping alone.",
        "Logits of a first draft pass: one row in 4 (k = 3); the table has rows, not requests.",
    ]
    if setup.device == "cuda":
        not_measured.append("Piecewise graphs: a step with prompt chunks is priced as an eager one.")
    if setup.depths:
        low, high = setup.depths
        notes.append(f"Layers: measured at {low} and {high} of {setup.target.layers}, times of the whole by the slope.")
    if setup.device == "synthetic":
        notes = ["A synthetic device: known functions with seeded noise, to try the profiler. Nothing is measured."]
        not_measured = ["Every number."]
    return {
        "source": f"specsim profile, preset {setup.preset}, seed {setup.seed}; {ran}",
        "date": str(environment.get("date") or datetime.datetime.now(datetime.UTC).date()),
        "licence": "Our own measurement, under the licence of this repository.",
        "measured": [] if setup.device == "synthetic" else _measured(points),
        "not_measured": not_measured,
        "notes": notes,
    }


def _measured(points: Points) -> list[str]:
    counts: dict[str, int] = {}
    for row in points.ok():
        counts[row.point.phase] = counts.get(row.point.phase, 0) + 1
    return [f"{phase}: {count} points" for phase, count in counts.items()]
