"""What a run costs, and how many tasks it got done for that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..engine.records import Ints
from ..inputs.scenario import Price

NEVER = 1e-9  # a success rate at which no number of tasks is worth printing


def gpu_cost_usd(duration_s: float, replicas: int, price: Price) -> float:
    """USD for all GPUs over the whole duration, idle time included."""
    return duration_s / 3600 * replicas * price.gpus_per_replica * price.usd_per_gpu_hour


def successful_tasks(
    slice_index: Ints, within_deadline: NDArray[np.bool_], success_rates: Sequence[float | None]
) -> float | None:
    """Expected number of tasks done: completed requests within the deadline, each times its slice's success rate.

    slice_index, within_deadline: one entry per completed request. None if a slice among them states no rate.
    """
    completed = np.bincount(slice_index[within_deadline], minlength=len(success_rates))
    tasks = 0.0
    for index in np.unique(slice_index):
        rate = success_rates[index]
        if rate is None:
            return None
        if rate > NEVER:
            tasks += float(completed[index]) * rate
    return tasks
