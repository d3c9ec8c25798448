"""Queue, batch and KV blocks over time from steps-ARM.csv: means over parts of it, so that the page stays small."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from .csv_rows import csv_rows, defect

PARTS = 240  # of the time, in one line of a figure
LEVELS = ("waiting", "running", "blocks_used", "drafts")
_COLUMNS = ("replication", "replica", "start_ms", "duration_ms", "waiting", "running", "blocks_used", "proposed_drafts")


@dataclass(frozen=True, slots=True)
class Series:
    """One replica's levels over time, [parts]: `at_s` is the middle of a part; levels by the names in LEVELS."""

    at_s: list[float]
    levels: dict[str, list[float]]


def step_series(folder: Path, arm: str) -> list[Series]:
    """The first replication of an arm, one series a replica; none where there is no such file.

    Between two steps the engine is idle and every level is 0. Raises InputError.
    """
    path = folder / f"steps-{quote(arm, safe='')}.csv"
    if not path.is_file():
        return []
    by_replica: dict[str, list[list[float]]] = {}
    for number, (replication, replica, *cells) in enumerate(csv_rows(path, _COLUMNS), 2):
        if replication != "0":
            break
        try:
            by_replica.setdefault(replica, []).append([float(cell) for cell in cells])
        except ValueError:
            raise defect(path, number, "has a step without a number") from None
    return [_series(np.array(rows)) for rows in by_replica.values()]


def _series(rows: NDArray[np.float64]) -> Series:
    start, duration, waiting, running, blocks, drafts = rows.T
    end = start + duration
    edges = np.linspace(0.0, end[-1], PARTS + 1)
    columns = {"waiting": waiting, "running": running, "blocks_used": blocks, "drafts": drafts}
    return Series(
        at_s=[float(value) for value in (edges[:-1] + edges[1:]) / 2000.0],
        levels={name: _means(start, end, values, edges) for name, values in columns.items()},
    )


def _means(
    start: NDArray[np.float64], end: NDArray[np.float64], level: NDArray[np.float64], edges: NDArray[np.float64]
) -> list[float]:
    """Time-weighted means between edges of a level that holds within its steps and is 0 between them."""
    at = np.column_stack((start, end)).ravel()
    total = np.column_stack((np.zeros_like(level), level * (end - start))).ravel().cumsum()
    area = np.interp(edges, at, total, left=0.0)
    return [float(value) for value in np.diff(area) / np.diff(edges)]
