"""KV blocks kept by content: prefix caching with its free queue. Rules 14 to 16 of the vLLM scheduler."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from .kv_blocks import KVBlocks
from .rows import Row
from .settings import EngineSettings

BlockContent = Callable[[Row, int], int]


class PrefixBlocks(KVBlocks):
    """Every block has an identity; full blocks of known tokens are found by content until they are evicted.

    content(row, i): what the i-th block of a row holds, as a number that stands for it and all blocks before it. A pool
    without a limit forgets nothing.
    """

    def __init__(self, settings: EngineSettings, content: BlockContent) -> None:
        super().__init__(settings)
        self._content = content
        self._drops_last_hit = settings.drops_last_hit
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(self.usable) if self.limited else ())
        self._never_used = 0
        self._users: dict[int, int] = {}
        self._content_of: dict[int, int] = {}
        self._blocks_with: dict[int, OrderedDict[int, None]] = {}

    # --- admission ----------------------------------------------------------------------------------------------------

    def find_cached(self, row: Row) -> int:
        """Rule 14: tokens of the longest run of cached full blocks, which leaves at least one token to compute."""
        hits = []
        for index in range((row.known_tokens - 1) // self._block_size):
            blocks = self._blocks_with.get(self._content(row, index))
            if not blocks:
                break
            hits.append(next(iter(blocks)))  # of duplicates the oldest
        if self._drops_last_hit and hits:
            hits.pop()
        row.hits = hits
        return len(hits) * self._block_size

    def admits(self, row: Row, needed: Iterable[int], free: int) -> bool:
        """Whether a row may hold each of so many blocks out of `free`; hits that nobody uses count as needed."""
        saved = sum(1 for block in row.hits if block in self._users)
        return max(needed) - saved <= free

    def admit(self, row: Row) -> None:
        """Take the cached blocks that were found; a cache counts first admissions alone (rule 23)."""
        if not row.preemptions:
            self.queried_tokens += row.known_tokens
            self.hit_tokens += len(row.hits) * self._block_size
        for block in row.hits:
            users = self._users.get(block, 0)
            if not users:
                self._free.pop(block, None)
                self.held_by_rows += 1
            self._users[block] = users + 1
        row.block_ids = list(row.hits)
        row.blocks = row.published = len(row.hits)

    # --- blocks of a row ----------------------------------------------------------------------------------------------

    def give(self, row: Row, needed: int) -> None:
        """Let the row hold so many blocks; new ones come from the front of the free queue and lose their content."""
        lacking = needed - row.blocks
        if lacking <= 0:
            return
        for _ in range(lacking):
            if self.limited:
                block, _ = self._free.popitem(last=False)
                self._forget(block)
            else:
                block = self._never_used
                self._never_used += 1
            self._users[block] = 1
            row.block_ids.append(block)
        self.held_by_rows += lacking
        row.blocks = needed

    def _forget(self, block: int) -> None:
        content = self._content_of.pop(block, None)
        if content is not None:
            blocks = self._blocks_with[content]
            del blocks[block]
            if not blocks:
                del self._blocks_with[content]

    def publish(self, row: Row, computed: int) -> None:
        """Rule 15: full blocks of known tokens can be found from the moment they are scheduled; drafts never."""
        full = min(computed, row.known_tokens) // self._block_size
        for index in range(row.published, full):
            content, block = self._content(row, index), row.block_ids[index]
            self._content_of[block] = content
            self._blocks_with.setdefault(content, OrderedDict())[block] = None
        row.published = max(row.published, full)

    def release(self, row: Row) -> None:
        """Rule 16: from the tail; uncached blocks to the front of the free queue, cached ones to its back."""
        for block in reversed(row.block_ids):
            users = self._users[block] - 1
            if users:
                self._users[block] = users
                continue
            del self._users[block]
            self.held_by_rows -= 1
            if self.limited:
                self._free[block] = None
                if block not in self._content_of:
                    self._free.move_to_end(block, last=False)
        row.block_ids = []
        row.hits = []
        row.blocks = row.published = 0
