"""Collects columns while a simulation runs: plain appends in the loop, arrays at the end."""

from __future__ import annotations

from array import array

import numpy as np

from ..cost.step_costs import StepShape, StepTerms
from .records import Floats, Ints, RequestRecords, Status, Steps
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
PLAN_COLUMNS = tuple(name for name in Steps.__dataclass_fields__ if name != "committed_tokens")


class StepLog:
    """One replica's steps. The blocks of settled rows are counted in batches from their slots."""

    def __init__(self, block_reach: int, block_size: int) -> None:
        self.committed_tokens = array("q")
        self._values = array("d")
        self._block_reach = block_reach
        self._block_size = block_size
        self._steps = 0
        self._slots_step: list[int] = []
        self._flats: list[Ints] = []
        self._bases: list[Ints] = []
        self._counted: list[tuple[Ints, Ints]] = []

    def add(
        self,
        start_ms: float,
        host_ms: float,
        step_ms: float,
        terms: StepTerms,
        shape: StepShape,
        running: int,
        waiting: int,
        blocks: int,
        proposed_drafts: int,
    ) -> None:
        """One planned step, in the order of `PLAN_COLUMNS`. blocks: those of single rows; settled ones tell theirs."""
        decodes, draft_tokens, context_tokens, chunks, _, _ = shape
        _, target_ms, target_decode_ms, kv_update_ms, sampling_ms, draft_ms, extrapolated, graph = terms
        self._values.extend(
            (
                start_ms,
                host_ms,
                target_ms,
                target_decode_ms,
                kv_update_ms,
                sampling_ms,
                draft_ms,
                step_ms if extrapolated else 0.0,
                decodes,
                draft_tokens,
                len(chunks),
                sum([tokens for tokens, _ in chunks]) if chunks else 0,
                context_tokens,
                running,
                waiting,
                blocks,
                graph,
                proposed_drafts,
            )
        )
        self._steps += 1

    def add_many(self, table: Floats) -> None:
        """Several planned steps, [step, column], all blocks counted."""
        self._values.frombytes(table.tobytes())
        self._steps += len(table)

    def settled_blocks(self, flat: Ints, base: Ints) -> None:
        """The slots of settled rows in the step that is added next; the arrays must not change any more."""
        self._slots_step.append(self._steps)
        self._flats.append(flat)
        self._bases.append(base)
        if len(self._flats) >= _BATCH_STEPS:
            self._count_blocks()

    def _count_blocks(self) -> None:
        if not self._flats:
            return
        lengths = np.array([len(flat) for flat in self._flats])
        held = np.concatenate(self._flats)
        held += np.concatenate(self._bases)
        held += self._block_reach
        held //= self._block_size
        blocks = np.add.reduceat(held, np.cumsum(lengths) - lengths)
        self._counted.append((np.array(self._slots_step), blocks))
        self._slots_step.clear()
        self._flats.clear()
        self._bases.clear()

    def steps(self) -> Steps:
        """The columns of all steps so far."""
        self._count_blocks()
        table = np.frombuffer(self._values, dtype=np.float64).reshape(-1, len(PLAN_COLUMNS)).T
        columns = dict(zip(PLAN_COLUMNS, table, strict=True))
        floats = {name: columns[name].copy() for name in PLAN_COLUMNS[:_FLOAT_COLUMNS]}
        integers = {name: columns[name].astype(np.int64) for name in PLAN_COLUMNS[_FLOAT_COLUMNS:]}
        integers["committed_tokens"] = np.array(self.committed_tokens, dtype=np.int64)
        for steps, blocks in self._counted:
            integers["blocks_used"][steps] += blocks
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

    def records(self, requests: int) -> RequestRecords:
        """The columns of the first so many requests, in the order of the workload; the others were not sent."""
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
            arrival_ms=np.array(self.arrival_ms[:requests]),
            status=status,
            replica=np.array(self.replica[:requests], dtype=np.int64),
            own_prefill_ms=own_prefill_ms,
            **dict(zip(_FINISHED_COLUMNS, table, strict=True)),
        )
