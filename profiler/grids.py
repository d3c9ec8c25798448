"""Full grids out of points: a missing cell takes the axis point with it that has most of them, never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

Cell = tuple[int, ...]


def complete_axes(cells: Mapping[Cell, float]) -> list[list[int]]:
    """Axes of the largest grid without holes that dropping single axis points, worst first, leads to."""
    dimensions = len(next(iter(cells)))
    axes = [sorted({cell[i] for cell in cells}) for i in range(dimensions)]
    while missing := [cell for cell in product(*axes) if cell not in cells]:
        lacking = {
            (i, value): sum(cell[i] == value for cell in missing) / _others(axes, i)
            for i in range(dimensions)
            for value in axes[i]
        }
        i, value = max(lacking, key=lambda place: (lacking[place], place[1]))
        axes[i].remove(value)
    return axes


def nested(cells: Mapping[Cell, float], axes: list[list[int]], before: Cell = ()) -> Any:
    """Times as nested lists in the order of the axes."""
    if len(before) == len(axes):
        return cells[before]
    return [nested(cells, axes, (*before, value)) for value in axes[len(before)]]


def _others(axes: list[list[int]], but: int) -> int:
    size = 1
    for i, axis in enumerate(axes):
        size *= len(axis) if i != but else 1
    return size
