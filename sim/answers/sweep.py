"""`specsim sweep`: every cell of a grid on common random numbers, the baseline once for each traffic."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from ..inputs.errors import SpecsimError
from ..inputs.vary import parse_axes
from .case_store import CaseStore
from .cell_run import run_baseline, run_cell
from .executors import Workers, workers
from .grid import Cell, grid_cells
from .replicate import ArmReplication
from .sweep_document import sweep_document

Progress = Callable[[int, int, str], None]
IN_FLIGHT = 2  # submitted cells for each that can run, so that nobody waits for the next


def sweep_scenario(
    path: Path | None,
    sets: Sequence[str],
    vary: Sequence[str],
    *,
    jobs: int = 1,
    dask: str | None = None,
    directory: Path | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """All cells of the grid as one JSON object, the same for any number of processes.

    directory: where finished cases are kept, and taken from. progress(done, total, label).
    Raises InputError for mistakes in the input, SpecsimError if workers are lost; finished cases are kept then.
    """
    report = progress or _silent
    axes = parse_axes(vary)
    cells = grid_cells(path, sets, axes, report)
    found: dict[str, dict[str, Any]] = {}
    with workers(jobs, dask) as pool:
        store = None if directory is None else CaseStore(directory)
        total = len({cell.case for cell in cells})
        for cell in cells if store is not None else ():
            document = store.case(cell.case) if store is not None else None
            if document is not None:
                found[cell.case] = document
        report(len(found), total, "cells")
        missing = {cell.case: cell for cell in cells if cell.case not in found}
        for case, document in _simulated(list(missing.values()), pool, store):
            found[case] = document
            report(len(found), total, "cells")
    return sweep_document(axes, cells, found, metric)


def _silent(done: int, total: int, label: str) -> None:
    return None


def _simulated(cells: Sequence[Cell], pool: Workers, store: CaseStore | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every cell's case and result, as they are finished and kept."""
    queue = _Queue(cells, store)
    running: dict[Future[Any], Cell | str] = {}
    try:
        while queue or running:
            while queue and len(running) < IN_FLIGHT * pool.width and (job := queue.next()) is not None:
                function, arguments, what = job
                running[pool.executor.submit(function, *arguments)] = what
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=list(running).index):
                what = running.pop(future)
                result = future.result()
                if isinstance(what, Cell):
                    if store is not None:
                        store.keep_case(what.case, result)
                    yield what.case, result
                else:
                    queue.baseline_done(what, result)
    except BrokenProcessPool as error:
        raise SpecsimError(_lost("a worker process ended, perhaps for want of memory", "use fewer --jobs")) from error
    except Exception as error:
        if not isinstance(error, CancelledError) and type(error).__module__.partition(".")[0] != "distributed":
            raise
        raise SpecsimError(_lost(f"the cluster failed ({type(error).__name__})", "look at its log")) from error


def _lost(what: str, remedy: str) -> str:
    rule = "finished cells are kept where --out names a directory"
    return f"specsim sweep:1:1: workers: {what}, {rule}, {remedy} and repeat the command"


Job = tuple[Callable[..., Any], tuple[Any, ...], Cell | str]


class _Queue:
    """Cells that are not started yet. A cell is ready once its traffic has a baseline."""

    def __init__(self, cells: Sequence[Cell], store: CaseStore | None) -> None:
        self._store = store
        self._waiting: dict[str, list[Cell]] = {}
        for cell in cells:
            self._waiting.setdefault(cell.traffic, []).append(cell)
        self._wanted = deque(self._waiting)
        self._ready: deque[tuple[Cell, list[ArmReplication]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting or self._ready)

    def next(self) -> Job | None:
        """Something to run; None where everything waits for a baseline."""
        while not self._ready and self._wanted:
            traffic = self._wanted.popleft()
            known = None if self._store is None else self._store.baseline(traffic)
            if known is None:
                return run_baseline, (self._waiting[traffic][0],), traffic
            self._release(traffic, known)
        if not self._ready:
            return None
        cell, baseline = self._ready.popleft()
        return run_cell, (cell, baseline), cell

    def baseline_done(self, traffic: str, baseline: list[ArmReplication]) -> None:
        """Keep a baseline and let its cells go."""
        if self._store is not None:
            self._store.keep_baseline(traffic, baseline)
        self._release(traffic, baseline)

    def _release(self, traffic: str, baseline: list[ArmReplication]) -> None:
        self._ready.extend((cell, baseline) for cell in self._waiting.pop(traffic))
