"""When each step passes from one phase to the next, on the clock of the run."""

from __future__ import annotations

import numpy as np

from ..engine.records import Floats, Steps

STEP_PHASES = ("host", "verification", "prefill", "kv_update", "sampling", "drafting")


def phase_bounds_ms(steps: Steps) -> Floats:
    """[step, 7]: a step's start and the end of each of its `STEP_PHASES`; the last one is the step's end.

    No time goes backwards along a row or from one row to the next. The target pass is divided as `time_share` does:
    verification up to its cost without the step's prefill rows, prefill beyond; on the device both are one pass.
    Raises ValueError where a time is no number.
    """
    decode_ms = np.minimum(steps.target_decode_ms, steps.target_ms)
    parts = (
        steps.start_ms,
        steps.host_ms,
        decode_ms,
        steps.target_ms - decode_ms,
        steps.kv_update_ms,
        steps.sampling_ms,
        steps.draft_ms,
    )
    bounds = np.cumsum(np.stack(parts, axis=1), axis=1)
    if not np.isfinite(bounds).all():
        raise ValueError("a step takes nan or infinitely many ms")
    # A step's parts are added in another order than the clock does: without this, rounding lets steps overlap.
    bounds[:-1] = np.minimum(bounds[:-1], bounds[1:, :1])
    return np.asarray(bounds)
