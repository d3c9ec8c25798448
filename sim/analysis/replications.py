"""Replications of an arm merged into its result, by the rules of `FIELDS`, with confidence intervals over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .draft_lengths import DraftLengthRow
from .fields import COST, FIELDS, SLICE_FIELDS, Merge, Ratio, Rule, Table
from .marginal import MarginalRow
from .metrics import ReplicationMetrics, Totals, Value, ratio_value
from .overload import Overload
from .statistics import Sample, mean_interval, sample_of

Intervals = dict[str, list[float]]


def merge_replications(
    replications: Sequence[ReplicationMetrics],
    *,
    marginal: list[MarginalRow],
    draft_length: list[DraftLengthRow],
    overload: Overload,
    intervals: Intervals | None = None,
) -> dict[str, Any]:
    """The arm's object: every field of `FIELDS`, then `ci` {field: [low, high]} of means and ratios.

    `ci` is None with one replication, and with overload, where a mean depends on how long one looks. intervals: those
    of a single replication, where something else than replications gives them.
    """
    given = {"marginal": marginal, "draft_length": draft_length, "overload": overload._asdict()}
    merged = {name: given[name] if name in given else merged_value(replications, name) for name in FIELDS}
    return {**merged, "ci": _intervals(replications, overload, FIELDS, intervals)}


def merge_slice(
    replications: Sequence[ReplicationMetrics], overload: Overload, intervals: Intervals | None = None
) -> dict[str, Any]:
    """One slice of an arm: every field of `SLICE_FIELDS`, then `ci`. overload: that of the arm."""
    merged = {name: merged_value(replications, name, SLICE_FIELDS) for name in SLICE_FIELDS}
    return {**merged, "ci": _intervals(replications, overload, SLICE_FIELDS, intervals)}


def merged_value(replications: Sequence[ReplicationMetrics], name: str, table: Table = FIELDS) -> Any:
    """One field over all replications; None where no replication defines it."""
    rule = table[name]
    values = [one.values[name] for one in replications]
    if not isinstance(rule, dict):
        return _merge(rule, values, replications)
    if all(value is None for value in values):
        return None
    return {key: _merge(part, _parts(values, key), replications) for key, part in rule.items()}


def field_sample(
    replications: Sequence[ReplicationMetrics], name: str, part: str | None = None, table: Table = FIELDS
) -> Sample | None:
    """What the replications say about a mean or a ratio (of a field, or of one `part` of it).

    None for other fields, for lists, and where a replication leaves it undefined.
    """
    rule = table[name]
    if isinstance(rule, dict):
        rule = rule[part] if part is not None else Merge.GIVEN
    if isinstance(rule, Ratio):
        return _ratio_sample(rule, [one.totals for one in replications])
    if rule is not Merge.MEAN:
        return None
    values = [one.values[name] for one in replications]
    if part is not None:
        values = _parts(values, part)
    defined = [value for value in values if isinstance(value, int | float)]
    return sample_of(defined) if len(defined) == len(values) else None


def _ratio_sample(rule: Ratio, totals: list[Totals]) -> Sample | None:
    if not all(rule.numerator in one and rule.denominator in one for one in totals):
        return None
    numerators = np.array([one[rule.numerator] for one in totals], np.float64)
    denominators = np.array([one[rule.denominator] for one in totals], np.float64)
    if numerators.ndim != 1 or not denominators.sum():
        return None
    return Sample(rule.scale * numerators, denominators)


def _parts(values: Sequence[Value], key: str) -> list[Value]:
    return [value.get(key) if isinstance(value, dict) else None for value in values]


def _merge(rule: Rule, values: Sequence[Value], replications: Sequence[ReplicationMetrics]) -> Any:
    if isinstance(rule, Ratio):
        return ratio_value(rule, _summed([one.totals for one in replications]))
    defined: list[Any] = [value for value in values if value is not None]
    if not defined:
        return None
    if rule is Merge.SUM:
        return sum(defined)
    return max(defined) if rule is Merge.MAX else float(np.mean(defined))


def _summed(totals: list[Totals]) -> Totals:
    """Totals over replications, of those that every replication has."""
    names = set.intersection(*(set(one) for one in totals))
    return {name: sum((one[name] for one in totals[1:]), start=totals[0][name]) for name in names}


def _intervals(
    replications: Sequence[ReplicationMetrics], overload: Overload, table: Table, given: Intervals | None
) -> Intervals | None:
    if overload.detected:
        return None
    if len(replications) < 2:
        return None if given is None else {name: given[name] for name in table if name in given}
    intervals = {}
    fields = [(name, None) for name in table] + [("cost", part) for part in COST]
    for name, part in fields:
        sample = field_sample(replications, name, part, table)
        interval = mean_interval(sample) if sample is not None else None
        if interval is not None:
            intervals[part or name] = list(interval)
    return intervals
