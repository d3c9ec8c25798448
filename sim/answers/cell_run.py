"""What a process does for a sweep: the baseline of some traffic, or all other arms of a cell beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .grid import Cell
from .plan import plan_run
from .replicate import ArmReplication, Task, run_replication
from .run import result_document


def run_baseline(cell: Cell) -> list[ArmReplication]:
    """The baseline of a cell in every replication; other cells of the same traffic have the same one."""
    task = _task(cell)
    alone = replace(task, plan=replace(task.plan, arms=task.plan.arms[:1]))
    return [run_replication(alone, number)[0] for number in range(task.scenario.run.replications)]


def run_cell(cell: Cell, baseline: list[ArmReplication]) -> dict[str, Any]:
    """The result of a cell, the same as `specsim run` gives for its scenario."""
    task = _task(cell)
    rows = [run_replication(task, number, baseline=known) for number, known in enumerate(baseline)]
    by_arm = {arm.name: [row[place] for row in rows] for place, arm in enumerate(task.plan.arms)}
    return result_document(cell.loaded(), task.plan, by_arm, [])


def _task(cell: Cell) -> Task:
    loaded = cell.loaded()
    return Task(loaded.scenario, cell.base_dir, plan_run(loaded), 0)
