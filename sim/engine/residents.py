"""Who is in a replica: running requests, some of them settled, waiting ones, and the blocks that they hold."""

from __future__ import annotations

from collections import deque

from .kv_blocks import KVBlocks
from .rows import Row
from .settings import EngineSettings
from .settled import SettledRows


class Residents:
    """State that every style of scheduler keeps; `settled` and then `running` make up the running list."""

    def __init__(self, settings: EngineSettings, settled: SettledRows) -> None:
        self.settings = settings
        self.settled = settled
        self.running: list[Row] = []
        self.waiting: deque[Row] = deque()
        self.blocks = KVBlocks(settings)

    def num_running(self) -> int:
        """Residents, scheduled in this step or not."""
        return self.settled.count + len(self.running)

    def release_settled(self) -> list[Row]:
        """Turn the settled rows back into single ones, between two steps."""
        rows = self.settled.release()
        self.blocks.held_by_rows += sum(row.blocks for row in rows)
        return rows
