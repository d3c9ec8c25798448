"""Who is in a replica: running requests, some of them settled, waiting ones, and the blocks that they hold."""

from __future__ import annotations

from collections import deque

from .kv_blocks import KVBlocks
from .prefix_blocks import BlockContent, PrefixBlocks
from .rows import Row
from .settings import EngineSettings
from .settled import SettledRows
from .waiting import PriorityWaiting


class Residents:
    """State that every style of scheduler keeps; `settled` and then `running` make up the running list.

    drafts_first: a round's drafts are made in the step that verifies them, and prompts are prefilled in steps of their
    own; else drafts are made at the end of the step before.
    """

    drafts_first = False

    def __init__(self, settings: EngineSettings, settled: SettledRows, content: BlockContent | None = None) -> None:
        self.settings = settings
        self.settled = settled
        self.running: list[Row] = []
        by_priority = settings.scheduling_policy == "priority"
        self.waiting: deque[Row] | PriorityWaiting = PriorityWaiting() if by_priority else deque()
        self.blocks = PrefixBlocks(settings, content) if settings.prefix_caching and content else KVBlocks(settings)

    def num_running(self) -> int:
        """Residents, scheduled in this step or not."""
        return self.settled.count + len(self.running)

    def release_settled(self) -> list[Row]:
        """Turn the settled rows back into single ones, between two steps."""
        rows = self.settled.release()
        self.blocks.held_by_rows += sum(row.blocks for row in rows)
        return rows
