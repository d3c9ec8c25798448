"""Latency distributions from requests-ARM.csv: quantiles, so that the page stays small."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import numpy as np

from .csv_rows import csv_rows, defect

METRICS = ("ttft", "tpot", "e2el", "decode", "queue")
PERCENTS = (*range(0, 100, 2), 99, 99.5, 100)
ALL = ""  # the whole workload among the slices
Quantiles = dict[str, dict[str, list[float]]]


def request_quantiles(folder: Path, arm: str) -> Quantiles:
    """By slice, ALL for the whole workload, and metric: milliseconds at PERCENTS.

    Over completed requests of all replications; empty without such a file. Raises InputError where it is broken.
    """
    path = folder / f"requests-{quote(arm, safe='')}.csv"
    if not path.is_file():
        return {}
    values = _values(path)
    return {
        name: {metric: _quantiles(ms) for metric, ms in of_slice.items() if len(ms)}
        for name, of_slice in values.items()
    }


def _values(path: Path) -> Mapping[str, Mapping[str, array[float]]]:
    found: dict[str, dict[str, array[float]]] = defaultdict(lambda: {metric: array("d") for metric in METRICS})
    columns = [f"{metric}_ms" for metric in METRICS]
    for number, (name, *cells) in enumerate(csv_rows(path, ["slice", *columns]), 2):
        for metric, cell in zip(METRICS, cells, strict=True):
            if cell:
                try:
                    ms = float(cell)
                except ValueError:
                    raise defect(path, number, f"has no number in {metric}_ms") from None
                found[name][metric].append(ms)
                found[ALL][metric].append(ms)
    return found


def _quantiles(ms: array[float]) -> list[float]:
    return [float(value) for value in np.percentile(np.frombuffer(ms), PERCENTS)]
