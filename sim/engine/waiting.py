"""The waiting queue of an engine that serves by priority. Rule 24 of the vLLM scheduler."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from .rows import Row


def urgency(row: Row) -> tuple[int, int]:
    """Smaller is served first: the priority value, then the order of arrival."""
    return row.priority, row.arrival


class PriorityWaiting:
    """Sorted by priority and arrival; who comes back takes the place that these give it."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def append(self, row: Row) -> None:
        """Let a row wait."""
        insort(self._rows, row, key=urgency)

    appendleft = append

    def popleft(self) -> Row:
        """The next one."""
        return self._rows.pop(0)

    def __getitem__(self, index: int) -> Row:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)
