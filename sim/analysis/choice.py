"""Which of several arms is best, and which cannot be told apart from it: paired samples of one measure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypedDict, TypeVar

from .comparison import ROUNDING, Verdict
from .statistics import Sample, paired_difference_interval

Key = TypeVar("Key", bound=Hashable)


class RatioRow(TypedDict):
    """A measure over that of a reference, with the 95 % interval of the paired difference, and what that shows."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict


class Best(NamedTuple, Generic[Key]):
    """The key with the best estimate, and all others whose paired difference from it may be 0."""

    key: Key
    ties: tuple[Key, ...]


def ratio_row(sample: Sample, reference: Sample, *, higher_is_better: bool = True) -> RatioRow:
    """`sample` against `reference`; not tested with fewer than two replications."""
    base, interval = reference.estimate, paired_difference_interval(sample, reference)
    ratio = sample.estimate / base if base else None
    if interval is None or not base:
        return {"ratio": ratio, "low": None, "high": None, "verdict": "not_tested"}
    low, high = interval
    verdict: Verdict = "no_difference_shown"
    if not low <= ROUNDING * abs(base) or not high >= -ROUNDING * abs(base):
        verdict = "better" if (low > 0) == higher_is_better else "worse"
    return {"ratio": ratio, "low": 1 + low / base, "high": 1 + high / base, "verdict": verdict}


def best_of(samples: Mapping[Key, Sample], *, higher_is_better: bool = True) -> Best[Key]:
    """The best of at least one sample; keys keep their order, the first of equals is best."""
    sign = 1.0 if higher_is_better else -1.0
    best = max(samples, key=lambda key: sign * samples[key].estimate)
    ties = [
        key
        for key, sample in samples.items()
        if key != best and ratio_row(sample, samples[best])["verdict"] in ("no_difference_shown", "not_tested")
    ]
    return Best(best, tuple(ties))


def close_to_best(samples: Mapping[Key, Sample], least_gain: float) -> set[Key]:
    """The best, its ties, and those that lose less than `least_gain` of it; more is better."""
    best = best_of(samples)
    floor = (1 - least_gain) * max(sample.estimate for sample in samples.values())
    return {key for key, sample in samples.items() if key == best.key or key in best.ties or sample.estimate > floor}
