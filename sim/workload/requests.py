"""What the engine is asked to do, as columns: one entry per request, in the order in which they are sent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Requests:
    """All requests of one replication; every arm of a comparison sees the same ones.

    Open traffic (`concurrency` None): request i arrives at `arrival_ms[i]`, non-decreasing. Closed traffic: the first
    `concurrency` requests arrive at 0, each later one `think_time_ms` after an earlier one ended; `arrival_ms` is 0.
    send_until_ms: closed traffic sends no request from then on, so that some may never be sent.
    hash_offsets, hash_ids, hash_block_tokens: block hashes of the prompts, as in `TraceColumns`; None without them.
    priority: smaller is served first where the engine serves by priority. shared_prefix_tokens: the first tokens of a
    prompt, the same in all requests of its slice.
    """

    arrival_ms: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    slice_index: NDArray[np.int64]
    prefix_hit_tokens: NDArray[np.int64]
    concurrency: int | None = None
    think_time_ms: float = 0.0
    hash_offsets: NDArray[np.int64] | None = None
    hash_ids: NDArray[np.int64] | None = None
    hash_block_tokens: int | None = None
    send_until_ms: float | None = None
    priority: NDArray[np.int64] | None = None
    shared_prefix_tokens: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    def first(self, count: int) -> Requests:
        """The first `count` of them."""
        cut = self.taken(np.arange(min(count, len(self))))
        if self.hash_offsets is None or self.hash_ids is None:
            return cut
        offsets = self.hash_offsets[: count + 1]
        return replace(cut, hash_offsets=offsets, hash_ids=self.hash_ids[: offsets[-1]])

    def taken(self, rows: NDArray[np.int64]) -> Requests:
        """These requests in this order, some perhaps repeatedly; block hashes are left as they are."""
        columns = ["arrival_ms", "prompt_tokens", "output_tokens", "slice_index", "prefix_hit_tokens"]
        columns += [name for name in ("priority", "shared_prefix_tokens") if getattr(self, name) is not None]
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})
