"""From what is good enough at each batch size to the schedule of draft lengths with the fewest ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .choice import close_to_best
from .statistics import Sample

LEAST_GAIN = 0.01  # a smaller gain is worth no range of its own, even where it is statistically certain


class Stretch(NamedTuple):
    """Neighbouring batch sizes that one draft length serves."""

    batches: tuple[int, ...]
    drafts: int


def fewest_stretches(by_batch: Mapping[int, Mapping[int, Sample]]) -> list[Stretch]:
    """Batch sizes in order, divided into as few stretches as have one draft length that is good enough in all of them.

    by_batch: output throughput by draft length, for each batch size. Good enough is the best, what cannot be told apart
    from it, and what loses less than `LEAST_GAIN`. Of several such lengths a stretch takes the one with the highest
    product of throughputs, of equals the shortest.
    """
    good = {batch: close_to_best(samples, LEAST_GAIN) for batch, samples in sorted(by_batch.items())}
    groups: list[tuple[list[int], set[int]]] = []
    for batch, lengths in good.items():
        if groups and groups[-1][1] & lengths:
            groups[-1] = ([*groups[-1][0], batch], groups[-1][1] & lengths)
        else:
            groups.append(([batch], lengths))
    return [Stretch(tuple(batches), _best(lengths, [by_batch[one] for one in batches])) for batches, lengths in groups]


def _best(lengths: set[int], by_batch: Sequence[Mapping[int, Sample]]) -> int:
    def score(drafts: int) -> float:
        product = 1.0
        for samples in by_batch:
            product *= samples[drafts].estimate / max(one.estimate for one in samples.values())
        return product

    return max(sorted(lengths), key=score)


def ranges_of(drafts: Sequence[int], flips: Sequence[int], most_requests: int) -> list[list[int]]:
    """vLLM's [first, last, drafts] ranges: from 1 to `most_requests`; flips[i] is the last batch of range i."""
    firsts = [1, *(flip + 1 for flip in flips)]
    lasts = [*flips, max(most_requests, firsts[-1])]
    return [[first, last, k] for first, last, k in zip(firsts, lasts, drafts, strict=True)]
