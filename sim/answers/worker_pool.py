"""Many independent simulations in order: in this process, or in a pool of others that end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from .run import leave_interrupts_to_the_parent

Mapped = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


@contextmanager
def worker_pool(jobs: int) -> Iterator[Mapped]:
    """Yields `mapped(function, items)`: results in the order of the items, the same for any number of jobs."""
    if jobs == 1:
        yield lambda function, items: map(function, items)
        return
    # A pool that is left by an exception ends its workers at once.
    with get_context("spawn").Pool(jobs, initializer=leave_interrupts_to_the_parent) as pool:
        yield lambda function, items: pool.imap(function, items)
