"""What KV blocks hold, as numbers: equal numbers are equal tokens, in this block and in all before it."""

from __future__ import annotations

from ..workload.requests import Requests
from .prefix_blocks import BlockContent
from .rows import Row
from .settings import EngineSettings

_REACH = 1 << 32  # more than any number of blocks or requests


def block_contents(requests: Requests, settings: EngineSettings) -> BlockContent | None:
    """Contents by the hashes of a trace or the prefix that a slice shares; any other block is its request's own.

    None where the engine keeps no prefix cache.
    """
    if not settings.prefix_caching:
        return None
    size = settings.block_size
    slices = requests.slice_index.data
    shared = None if requests.shared_prefix_tokens is None else requests.shared_prefix_tokens.data
    offsets, ids, hash_tokens = requests.hash_offsets, requests.hash_ids, requests.hash_block_tokens

    def content(row: Row, index: int) -> int:
        end = (index + 1) * size
        if end <= row.prompt_tokens:
            if offsets is not None and ids is not None and hash_tokens is not None:
                place = int(offsets[row.request]) + (end - 1) // hash_tokens
                if place < offsets[row.request + 1]:
                    return (int(ids[place]) * 2 + 2) * _REACH + index
            if shared is not None and end <= shared[row.request]:
                return (slices[row.request] * 2 + 1) * _REACH + index
        return -(row.request * _REACH + index) - 1

    return content
