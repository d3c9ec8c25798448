"""Passes whose shape repeats: run as they are, or captured once and replayed on tensors that stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch

from .batch import Batch, make_batch, set_lengths
from .clock import Clock, Program
from .kv_cache import KVCache
from .model import Decoder

Result = TypeVar("Result")
Key = tuple[object, ...]


class Passes(Protocol):
    """How passes of one batch are run. most_tokens: keys reserved for each request where passes are captured."""

    most_tokens: int | None

    def run(self, key: Key, program: Callable[[], Result]) -> Result:
        """What the program returns. Under one key it is always the same program."""

    def fixed(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """The value, where a program of these passes reads it."""


class EagerPasses:
    """Passes as they are."""

    most_tokens: int | None = None

    def run(self, _: Key, program: Callable[[], Result]) -> Result:
        """See `Passes`."""
        return program()

    def fixed(self, _: str, value: torch.Tensor) -> torch.Tensor:
        """See `Passes`."""
        return value


class CapturedPasses:
    """Each program is captured under its key the first time and replayed from then on; inputs are copied to it."""

    def __init__(self, clock: Clock, most_tokens: int) -> None:
        self._clock = clock
        self.most_tokens: int | None = most_tokens
        self._programs: dict[Key, Program] = {}
        self._inputs: dict[str, torch.Tensor] = {}

    def run(self, key: Key, program: Callable[[], Result]) -> Result:
        """See `Passes`. The result is in the same tensors each time."""
        known = self._programs.get(key)
        if known is None:
            known = self._programs[key] = self._clock.captured(program)
        result: Any = known.call()
        return result if known.outputs is None else known.outputs  # type: ignore[return-value]

    def fixed(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """See `Passes`."""
        if name not in self._inputs:
            self._inputs[name] = value.clone()
        return self._inputs[name].copy_(value)


class Places:
    """Where the rows of one model's passes stand: made anew each time, or moved in place where passes are captured."""

    def __init__(self, model: Decoder, cache: KVCache, passes: Passes) -> None:
        self._model, self._cache, self._most = model, cache, passes.most_tokens
        self._known: dict[int, Batch] = {}

    def at(self, query: int, computed: torch.Tensor) -> Batch:
        """`query` rows of each request after so many computed tokens, [batch]."""
        known = self._known.get(query)
        if known is not None and self._most is not None:
            set_lengths(known, self._cache, computed)
            return known
        batch = self.new(query, computed, self._most)
        self._known[query] = batch
        return batch

    def new(self, query: int, computed: torch.Tensor, most: int | None = None) -> Batch:
        """The same, for one pass."""
        mask = self._model.attention.needs_mask
        batch = make_batch(self._cache, [(query, 0, computed)], with_mask=mask, most=most)
        self._model.prepare(batch)
        return batch
