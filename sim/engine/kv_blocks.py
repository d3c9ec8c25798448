"""KV blocks of one replica: who holds how many. Rules 6 to 9 of the vLLM scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from .rows import Row
from .settings import UNLIMITED, EngineSettings


class KVBlocks:
    """Counts blocks of rows that are scheduled one by one; settled rows count themselves.

    A row holds ceil(min(computed + scheduled + lookahead, max_model_len) / block_size) blocks; blocks taken for drafts
    that are rejected are kept. One block of the pool is the null block.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._block_size = settings.block_size
        self._lookahead = settings.lookahead
        self._drafts = settings.num_speculative_tokens
        self._longest = settings.longest
        total = settings.num_gpu_blocks
        self.limited = total is not None
        self.usable = UNLIMITED if total is None else total - 1
        self.watermark = 0 if total is None else int(settings.watermark * total)
        self.held_by_rows = 0
        self.queried_tokens = self.hit_tokens = 0  # of a prefix cache

    def for_tokens(self, tokens: int) -> int:
        """Blocks that hold `tokens` tokens, drafts' slots not counted."""
        return -(-tokens // self._block_size)

    def for_row(self, computed: int, scheduled: int) -> int:
        """Blocks that a row must hold to be scheduled `scheduled` tokens."""
        return -(-min(computed + scheduled + self._lookahead, self._longest) // self._block_size)

    def extend(self, row: Row, scheduled: int, free: int) -> bool:
        """Give the row what it lacks for `scheduled` more tokens out of `free` blocks; False if they do not suffice."""
        needed = self.for_row(row.computed_tokens, scheduled)
        if needed - row.blocks > free:
            return False
        self.give(row, needed)
        return True

    def give(self, row: Row, needed: int) -> None:
        """Let the row hold so many blocks, if it does not hold more already."""
        lacking = needed - row.blocks
        if lacking > 0:
            row.blocks = needed
            self.held_by_rows += lacking

    def find_cached(self, row: Row) -> int:
        """Tokens that a row on admission need not compute: a prefix hit stated by the workload."""
        return min(row.cached_tokens, row.known_tokens - 1)

    def admits(self, row: Row, needed: Iterable[int], free: int) -> bool:
        """Whether a row on admission may hold each of so many blocks out of `free`."""
        return max(needed) <= free

    def admit(self, row: Row) -> None:
        """A row is admitted: nothing is shared here."""

    def publish(self, row: Row, computed: int) -> None:
        """A row's blocks have been scheduled: nothing is shared here."""

    def fits(self, end_tokens: int) -> bool:
        """Whether a request of this final length can ever run, alone if it must."""
        return self.most_needed(end_tokens) <= self.usable

    def release(self, row: Row) -> None:
        """Take back all blocks of a row that finished or was preempted."""
        self.held_by_rows -= row.blocks
        row.blocks = 0

    def most_needed(self, end_tokens: int) -> int:
        """Blocks that a request needs at the most, just before its last token is known."""
        return self.for_row(end_tokens - 1, self._drafts)
