"""The cells of a sweep as one JSON object: their results, the speed-up over the baseline, and where it breaks even."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .. import __version__
from ..analysis.comparison import BETTER
from ..inputs.errors import InputError, Problem
from ..inputs.vary import Axis
from ..inputs.wording import did_you_mean, shown
from .grid import Cell

SWEEP_SCHEMA = "specsim-sweep/1"
OPEN = ("poisson", "gamma", "trace")


def sweep_document(
    axes: Sequence[Axis], cells: Sequence[Cell], results: Mapping[str, dict[str, Any]], metric: str | None
) -> dict[str, Any]:
    """The cells in the order of the grid. results: by case. metric: whose gain is the speed-up; None: the traffic's."""
    first = results[cells[0].case]
    chosen = metric or speedup_metric([cell.data for cell in cells])
    rows = [_row(axes, cell, results[cell.case], chosen) for cell in cells]
    return {
        "schema": SWEEP_SCHEMA,
        "specsim_version": __version__,
        "seed": first["seed"],
        "replications": first["replications"],
        "scenario": first["scenario"],
        "calibration": first["calibration"],
        "axes": [{"path": axis.path, "values": list(axis.values)} for axis in axes],
        "speedup": {"metric": chosen, "better": BETTER[chosen]},
        "warnings": _warnings(rows),
        "break_even": list(_break_even(axes, rows)),
        "cells": rows,
    }


def check_metric(name: str | None) -> None:
    """Raises InputError if no speed-up can be told by that metric."""
    if name is not None and name not in BETTER:
        remedy = did_you_mean(name, BETTER, "take output_throughput, mean_tpot_ms or mean_e2el_ms")
        what, rule = f"unknown metric {shown(name)}", "a speed-up is told by a metric that arms are compared by"
        raise InputError([Problem("specsim sweep", 1, 1, "--metric", what, rule, remedy)])


def speedup_metric(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Users who wait for answers get more done; traffic with times of its own only has its answers sooner."""
    kinds = {scenario["workload"]["arrivals"]["kind"] for scenario in scenarios}
    return "mean_e2el_ms" if kinds <= set(OPEN) else "output_throughput"


def _row(axes: Sequence[Axis], cell: Cell, result: Mapping[str, Any], metric: str) -> dict[str, Any]:
    comparison = result["comparison"]
    return {
        "values": {axis.path: value for axis, value in zip(axes, cell.values, strict=True)},
        "case": cell.case,
        "traffic": cell.traffic,
        "set": list(cell.sets),
        "speedup": {arm: _speedup(compared.get(metric), metric) for arm, compared in comparison.items()},
        "warnings": result["warnings"],
        "arms": result["arms"],
        "comparison": comparison,
    }


def _speedup(compared: Mapping[str, Any] | None, metric: str) -> dict[str, Any]:
    """How many times better than the baseline, with its interval; above 1 is a gain, whatever the metric."""
    if compared is None:
        return {"ratio": None, "low": None, "high": None, "verdict": "not_tested"}
    if BETTER[metric] == "higher":
        return dict(compared)
    ratio, low, high = (compared[key] for key in ("ratio", "low", "high"))
    return {
        "ratio": 1 / ratio if ratio else None,
        "low": 1 / high if high and high > 0 else None,
        "high": 1 / low if low and low > 0 else None,
        "verdict": compared["verdict"],
    }


def _warnings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every cell's warnings once, with how many cells they concern where that is not all of them."""
    counts: dict[str, int] = {}
    for row in rows:
        for warning in row["warnings"]:
            counts[warning] = counts.get(warning, 0) + 1
    return [text if count == len(rows) else f"{text} ({count} of {len(rows)} cells)" for text, count in counts.items()]


def _break_even(axes: Sequence[Axis], rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Along each axis of numbers, all others held: neighbours between which an arm's gain turns into a loss."""
    for axis in axes:
        if len(axis.values) < 2 or not all(type(value) in (int, float) for value in axis.values):
            continue
        for others, line in _lines(axis, rows):
            for arm in line[0]["speedup"]:
                points = sorted((row["values"][axis.path], row["speedup"].get(arm, {}).get("ratio")) for row in line)
                known = [(value, ratio) for value, ratio in points if ratio is not None]
                for (low, before), (high, after) in pairwise(known):
                    if (before - 1) * (after - 1) < 0:
                        between = [low, high]
                        yield {"arm": arm, "path": axis.path, "at": others, "between": between, "gains": _side(before)}


def _side(before: float) -> str:
    return "below" if before > 1 else "above"


def _lines(axis: Axis, rows: Sequence[Mapping[str, Any]]) -> list[tuple[dict[str, Any], list[Mapping[str, Any]]]]:
    lines: dict[str, tuple[dict[str, Any], list[Mapping[str, Any]]]] = {}
    for row in rows:
        others = {path: value for path, value in row["values"].items() if path != axis.path}
        lines.setdefault(repr(others), (others, []))[1].append(row)
    return list(lines.values())
