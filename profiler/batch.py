"""The rows of one pass as tensors: which token of which request stands where, and where its keys and values go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .kv_cache import KVCache


@dataclass(slots=True)
class Segment:
    """Requests of one shape: `count` requests from slot `first` on with `query` rows each.

    used: keys of each request, those of the rows included, [count]. most: the largest of them, on the host. mask: which
    keys a row attends to, [count, 1, query, most]; None for back ends that have the rule inside.
    """

    first: int
    count: int
    query: int
    first_row: int
    used: torch.Tensor
    most: int
    starts: torch.Tensor  # [count + 1], rows before each request
    pages: torch.Tensor  # [count, pages], int32
    mask: torch.Tensor | None = None

    @property
    def rows(self) -> slice:
        """Its rows in the batch."""
        return slice(self.first_row, self.first_row + self.count * self.query)


@dataclass(slots=True)
class Batch:
    """positions, slots: of each row, [rows]."""

    positions: torch.Tensor
    slots: torch.Tensor
    segments: list[Segment]


def make_batch(
    cache: KVCache, groups: Sequence[tuple[int, int, torch.Tensor]], *, with_mask: bool, most: int | None = None
) -> Batch:
    """groups: (query, first request, computed tokens of each request as an int64 tensor on the device).

    most: keys to reserve where lengths will be changed in place; by default the longest request of the group decides,
    which asks the device for it.
    """
    positions, slots, segments, row = [], [], [], 0
    for query, first, computed in groups:
        count, device = len(computed), computed.device
        offsets = torch.arange(query, device=device)
        places = (computed[:, None] + offsets).flatten()
        requests = torch.arange(first, first + count, device=device).repeat_interleave(query)
        positions.append(places)
        slots.append(cache.slots(requests, places))
        used = computed + query
        longest = most if most is not None else int(used.max())
        mask = None
        if with_mask:
            keys = torch.arange(longest, device=device)
            mask = (keys <= (computed[:, None] + offsets)[:, :, None])[:, None]
        starts = torch.arange(0, count * query + 1, query, dtype=torch.int32, device=device)
        pages = cache.table[first : first + count].to(torch.int32)
        segments.append(Segment(first, count, query, row, used.to(torch.int32), longest, starts, pages, mask))
        row += count * query
    return Batch(torch.cat(positions), torch.cat(slots), segments)


def set_lengths(batch: Batch, cache: KVCache, computed: torch.Tensor) -> None:
    """Move a batch of one segment to other lengths, in place, so that a captured graph sees them."""
    (segment,) = batch.segments
    offsets = torch.arange(segment.query, device=computed.device)
    places = (computed[:, None] + offsets).flatten()
    requests = torch.arange(segment.first, segment.first + segment.count, device=computed.device)
    batch.positions.copy_(places)
    batch.slots.copy_(cache.slots(requests.repeat_interleave(segment.query), places))
    segment.used.copy_(computed + segment.query)
