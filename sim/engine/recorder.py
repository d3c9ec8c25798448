"""Collects columns while a simulation runs: plain appends in the loop, arrays at the end."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from .records import Ints, RequestRecords, Status, Steps
from .rows import Row

_BATCH_STEPS = 1024
_FLOAT_COLUMNS = 8
_FINISHED_COLUMNS = (
    "output_tokens",
    "first_scheduled_step",
    "first_token_step",
    "finish_step",
    "preemptions",
    "prefill_passes",
    "rounds",
    "num_drafts",
    "draft_tokens",
    "accepted_tokens",
    "draft_tokens_cut",
)
_NO_STEP_COLUMNS = (1, 2, 3)  # -1 where a request failed; the others are counts
STEP_COLUMNS = tuple(Steps.__dataclass_fields__)


class StepLog:
    """One replica's steps. The blocks of settled rows are counted in batches from the positions of each step."""

    def __init__(self, block_reach: int, block_size: int) -> None:
        self._values = array("d")
        self._block_reach = block_reach
        self._block_size = block_size
        self._flats: list[NDArray[np.int64]] = []
        self._bases: list[NDArray[np.int64]] = []
        self._settled_blocks: list[Ints] = []

    def add(self, values: tuple[float, ...], flat: NDArray[np.int64], base: NDArray[np.int64]) -> None:
        """One step in the order of `Steps`; its last column counts single rows' blocks only."""
        self._values.extend(values)
        self._flats.append(flat)
        self._bases.append(base)
        if len(self._flats) >= _BATCH_STEPS:
            self._count_blocks()

    def _count_blocks(self) -> None:
        lengths = np.array([len(flat) for flat in self._flats])
        blocks = np.zeros(len(lengths), dtype=np.int64)
        if lengths.any():
            computed = np.concatenate(self._flats) + np.concatenate(self._bases)
            held = (computed + self._block_reach) // self._block_size
            used = lengths > 0
            starts = np.cumsum(lengths) - lengths
            blocks[used] = np.add.reduceat(held, starts[used])
        self._settled_blocks.append(blocks)
        self._flats.clear()
        self._bases.clear()

    def steps(self) -> Steps:
        """The columns of all steps so far."""
        self._count_blocks()
        table = np.frombuffer(self._values, dtype=np.float64).reshape(-1, len(STEP_COLUMNS)).T
        columns = dict(zip(STEP_COLUMNS, table, strict=True))
        floats = {name: columns[name].copy() for name in STEP_COLUMNS[:_FLOAT_COLUMNS]}
        integers = {name: columns[name].astype(np.int64) for name in STEP_COLUMNS[_FLOAT_COLUMNS:]}
        integers["blocks_used"] += np.concatenate(self._settled_blocks)
        return Steps(**floats, **integers)  # type: ignore[arg-type]  # the names tell floats from integers


class RequestLog:
    """Outcome of every request, filled when it ends."""

    def __init__(self, requests: int) -> None:
        self.arrival_ms = [0.0] * requests
        self.replica = [0] * requests
        self._finished: list[tuple[int, ...]] = []
        self._own_prefill_ms: list[float] = []
        self._failed: list[int] = []

    def finish(self, row: Row, step: int) -> None:
        """A request has delivered its last token in this step."""
        self._finished.append(
            (
                row.request,
                row.end_tokens - row.prompt_tokens,
                row.first_scheduled_step,
                row.first_token_step,
                step,
                row.preemptions,
                row.prefill_passes,
                row.rounds,
                row.num_drafts,
                row.draft_tokens,
                row.accepted_tokens,
                row.draft_tokens_cut,
            )
        )
        self._own_prefill_ms.append(row.own_prefill_ms)

    def fail(self, request: int) -> None:
        """A request that can never fit was refused."""
        self._failed.append(request)

    def ended(self) -> int:
        """Requests that have finished or failed."""
        return len(self._finished) + len(self._failed)

    def records(self) -> RequestRecords:
        """The columns, in the order of the workload."""
        requests = len(self.arrival_ms)
        table = np.zeros((len(_FINISHED_COLUMNS), requests), dtype=np.int64)
        table[_NO_STEP_COLUMNS, :] = -1
        own_prefill_ms = np.zeros(requests)
        if self._finished:
            finished = np.array(self._finished, dtype=np.int64)
            table[:, finished[:, 0]] = finished[:, 1:].T
            own_prefill_ms[finished[:, 0]] = self._own_prefill_ms
        status = np.full(requests, int(Status.COMPLETED), dtype=np.int64)
        status[self._failed] = int(Status.FAILED)
        return RequestRecords(
            arrival_ms=np.array(self.arrival_ms),
            status=status,
            replica=np.array(self.replica, dtype=np.int64),
            own_prefill_ms=own_prefill_ms,
            **dict(zip(_FINISHED_COLUMNS, table, strict=True)),
        )
