"""From an arm's replications to its part of the result: merged, compared with the baseline, slice by slice as well."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..analysis.batch_means import METRICS, BatchSeries, Refusal, batch_difference, batch_intervals
from ..analysis.comparison import Difference, compare_arms, compare_slices
from ..analysis.draft_lengths import draft_length_rows
from ..analysis.metrics import ReplicationMetrics
from ..analysis.overload import Overload
from ..analysis.replications import Intervals, merge_replications, merge_slice
from ..inputs.scenario import Slice
from .marginal import marginal_table
from .plan import ArmPlan
from .replicate import ArmReplication


def merged_arm(
    arm: ArmPlan, baseline: ArmPlan, replications: Sequence[ArmReplication], overload: Overload
) -> dict[str, Any]:
    """An arm's object, with its slices where there are several."""
    merged = merge_replications(
        [one.metrics for one in replications],
        marginal=marginal_table(arm, baseline, replications),
        draft_length=draft_length_rows([one.draft_lengths for one in replications if one.draft_lengths]),
        overload=overload,
        intervals=_of_batches(replications),
    )
    slices = {
        part.name: merge_slice(_of_slice(replications, index), overload, _of_batches(replications, index))
        for index, part in _slices(arm, replications)
    }
    return {**merged, "slices": slices} if slices else merged


def compared_arm(
    arm: ArmPlan, replications: Sequence[ArmReplication], baseline: Sequence[ArmReplication], overloaded: bool
) -> dict[str, Any]:
    """An arm against the baseline, metric by metric; the same for each slice where there are several."""
    compared = compare_arms(
        [one.metrics for one in replications],
        [one.metrics for one in baseline],
        overloaded=overloaded,
        difference=_difference(replications, baseline),
    )
    slices = {
        part.name: compare_slices(
            _of_slice(replications, index),
            _of_slice(baseline, index),
            overloaded=overloaded,
            difference=_difference(replications, baseline, index),
        )
        for index, part in _slices(arm, replications)
    }
    return {**compared, "slices": slices} if slices else {**compared}


def refused_batches(replications: Sequence[ArmReplication]) -> dict[Refusal, list[str]]:
    """Metrics for which batches of one run give no interval, by why; nothing where nobody asked for batches."""
    series = _series(replications)
    return {} if series is None else batch_intervals(series)[1]


def _slices(arm: ArmPlan, replications: Sequence[ArmReplication]) -> list[tuple[int, Slice]]:
    """The slices with results of their own; none where there is only one."""
    return list(enumerate(arm.slices)) if replications[0].slices else []


def _of_slice(replications: Sequence[ArmReplication], index: int) -> list[ReplicationMetrics]:
    return [one.slices[index] for one in replications]


def _series(replications: Sequence[ArmReplication]) -> BatchSeries | None:
    """What is divided into batches; None where nobody asked for that, or no steady state was seen."""
    return replications[0].series if replications[0].steady else None


def _of_batches(replications: Sequence[ArmReplication], part: int | None = None) -> Intervals | None:
    series = _series(replications)
    return None if series is None else batch_intervals(series, part)[0]


def _difference(
    replications: Sequence[ArmReplication], baseline: Sequence[ArmReplication], part: int | None = None
) -> Difference | None:
    series, base = _series(replications), _series(baseline)
    if series is None or base is None:
        return None
    between = partial(batch_difference, series, base, part=part)
    return lambda metric: between(metric) if metric in METRICS else None
