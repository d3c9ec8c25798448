"""A recorded request trace as columns, whatever tool wrote it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """One entry per request in arrival order; `arrival_ms` counts from the first row. The arrays are read-only.

    arrival_ms: None in a trace of lengths alone. hash_ids: of the prompts' blocks of `hash_block_tokens`, all requests
    in a row; request r owns `hash_ids[hash_offsets[r]:hash_offsets[r + 1]]`, whose last one may be of a partial block.
    Equal ids anywhere in the trace mean equal blocks after equal prefixes. All three are None where there are none.
    """

    arrival_ms: NDArray[np.float64] | None
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    hash_offsets: NDArray[np.int64] | None = None
    hash_ids: NDArray[np.int64] | None = None
    hash_block_tokens: int | None = None

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    def rows(self, first: int, end: int) -> TraceColumns:
        """The rows [first, end), their hashes with them; times stay as they are."""
        cut = replace(
            self,
            arrival_ms=None if self.arrival_ms is None else self.arrival_ms[first:end],
            prompt_tokens=self.prompt_tokens[first:end],
            output_tokens=self.output_tokens[first:end],
        )
        if self.hash_offsets is None or self.hash_ids is None:
            return cut
        offsets = self.hash_offsets[first : end + 1]
        return replace(cut, hash_offsets=offsets - offsets[0], hash_ids=self.hash_ids[offsets[0] : offsets[-1]])
