"""Writes down which phase each request was in, as runs of steps; the analysis turns them into shares of time."""

from __future__ import annotations

from array import array

import numpy as np

from .records import Phase, Segments
from .rows import Row, StepPlan


class SegmentLog:
    """Closed segments of all requests of one run; a row carries its open one (`phase`, `phase_since`)."""

    def __init__(self) -> None:
        self._columns = array("q")

    def mark(self, plan: StepPlan, step: int) -> None:
        """Note the phases of all rows that a step treats one by one."""
        for row, _, _, _, decodes in plan.rows:
            self.switch(row, Phase.DECODE if decodes else Phase.PREFILL, step)
        for row in plan.left_out:
            self.switch(row, Phase.DECODE_LEFT_OUT if row.decodes else Phase.PREFILL_LEFT_OUT, step)
        for row in plan.paused:
            self.switch(row, Phase.DECODE, step)
        for victim in plan.preempted:
            self.switch(victim.row, Phase.PREEMPTED, step)

    def switch(self, row: Row, phase: Phase, step: int) -> None:
        """From this step on the row is in `phase`."""
        if row.phase_since < 0:
            row.first_scheduled_step = step
        elif row.phase == phase:
            return
        else:
            self.close(row, step - 1)
        row.phase = phase
        row.phase_since = step

    def close(self, row: Row, last_step: int) -> None:
        """End the row's open segment with this step."""
        if last_step >= row.phase_since:
            self._columns.extend((row.request, row.phase, row.phase_since, last_step, row.emitted))
        row.emitted = False

    def segments(self) -> Segments:
        """All segments, ordered by request and then by time."""
        table = np.array(self._columns, dtype=np.int64).reshape(-1, 5)
        table = table[np.argsort(table[:, 0], kind="stable")]
        request, phase, first_step, last_step, delivers = table.T.copy()
        return Segments(request, phase, first_step, last_step, delivers.astype(np.bool_))
