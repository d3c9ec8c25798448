"""Lists of block hashes, as traces for prefix caching have them."""

from __future__ import annotations

from typing import Any

HASH_RULE = "a list of whole numbers is needed, one for each block of the prompt (the last may be left out if partial)"
_LIMIT = 1 << 63


def block_hashes(cell: Any, prompt_tokens: int | None, block_tokens: int) -> list[int] | None:
    """The list, or None where it breaks `HASH_RULE`."""
    if type(cell) is not list:
        return None
    if prompt_tokens is not None and abs(len(cell) * block_tokens - prompt_tokens) >= block_tokens:
        return None
    if set(map(type, cell)) - {int} or (cell and not -_LIMIT <= min(cell) <= max(cell) < _LIMIT):
        return None
    return cell
