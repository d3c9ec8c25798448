"""A device that is a set of known functions with seeded noise: plan, run, resume and fit are tested against it.

Roofline and stairs of 64 rows, a cliff between graph and eager, attention that reads its KV. Nothing here is measured.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from .device import Measurement
from .errors import OutOfMemoryError
from .point import Group, Point
from .setup import Setup
from .timing import Sample, Settings, measure

TILE = 64


@dataclass(frozen=True, slots=True)
class Truth:
    """Milliseconds of each phase. Row counts are those of the batch; decode is one row group of equal shape."""

    layers_share: float = 1.0

    def dense_ms(self, rows: int, mode: str = "graph") -> float:
        """A stair every 64 rows, a slope within; an eager pass takes at least its launches."""
        stairs = (5.0 + 1.28 * ceil(rows / TILE) + 1e-3 * rows) * self.layers_share
        return stairs if mode == "graph" else max(9.0 * self.layers_share, stairs + 0.5)

    def attention_ms(self, batch: int, query: int, context: float) -> float:
        """Bytes of the contexts, and work of the rows; a launch a layer."""
        return (0.05 + batch * (25e-6 * context + 2e-3 * query)) * self.layers_share

    def prefill_ms(self, chunk: int, start: int) -> float:
        """Causal attention of one chunk: each token attends to all before it."""
        return (0.05 + 2e-6 * chunk * (start + chunk / 2)) * self.layers_share

    def kv_update_ms(self, rows: int) -> float:
        """Keys and values written."""
        return (0.01 + 3e-4 * rows) * self.layers_share

    def head_ms(self, rows: int) -> float:
        """The output head, in stairs of 64 rows."""
        return 0.2 + 0.05 * ceil(rows / TILE)

    def sampling_ms(self, batch: int, query: int) -> float:
        """Rows of the vocabulary."""
        return 0.03 + 2e-3 * batch * query

    def first_ms(self, rows: int) -> float:
        """First draft pass at the short context."""
        return 0.6 + 3e-3 * rows

    def narrow_ms(self, batch: int, context: float) -> float:
        """One narrow draft pass."""
        return 0.5 + batch * (2e-3 + 2e-6 * context)

    def host_ms(self, batch: int) -> float:
        """The host's own work of a step."""
        return 0.2 + 2e-3 * batch


class SyntheticDevice:
    """noise: relative standard deviation of one call. memory_tokens: KV tokens that fit. drift: growth over a point."""

    def __init__(
        self, setup: Setup, noise: float = 0.0, memory_tokens: int | None = None, live_steps: int = 30
    ) -> None:
        self._setup, self._noise, self._memory_tokens = setup, noise, memory_tokens
        self._live_steps = live_steps
        self.calls: list[str] = []

    def environment(self) -> dict[str, Any]:
        """As a device's header."""
        return {"kind": "synthetic", "name": "synthetic device (nothing measured)", "backend": "synthetic"}

    def measure(self, point: Point, settings: Settings) -> Measurement:
        """Draw the calls of a point; the same point has the same noise in every run."""
        self.calls.append(point.name)
        tokens = sum(group.count * (group.context + group.query) for group in point.groups)
        if self._memory_tokens is not None and tokens > self._memory_tokens:
            raise OutOfMemoryError(f"{tokens} KV tokens, {self._memory_tokens} fit")
        seed = hashlib.sha256(f"{self._setup.seed} {point.name}".encode()).digest()[:8]
        draw = np.random.default_rng(int.from_bytes(seed, "big"))
        if point.phase == "live":
            return self._live(point, draw)
        expected = self.expected_ms(point)

        def block(n: int) -> list[float]:
            return [float(ms) for ms in expected * np.exp(self._noise * draw.standard_normal(n))]

        extra: dict[str, Any] = {}
        if point.phase == "copy":
            extra["gb_per_s"] = 3000.0
        if point.phase == "product":
            extra["tflop_per_s"] = 800.0
        return Measurement(measure(block, settings), extra)

    def truth(self, layers: int = 0) -> Truth:
        """The functions at a depth of the target."""
        return Truth((layers or self._setup.target.layers) / self._setup.target.layers)

    def expected_ms(self, point: Point) -> float:
        """What a point takes without noise."""
        truth, groups = self.truth(point.layers), point.groups
        count, query, context = groups[0]
        rows = point.rows
        known = {
            "copy": lambda: 1.0,
            "product": lambda: 2.0,
            "head": lambda: truth.head_ms(rows),
            "kv_update": lambda: truth.kv_update_ms(rows),
            "sampling": lambda: truth.sampling_ms(count, query),
            "host": lambda: truth.host_ms(count),
            "draft_first": lambda: truth.first_ms(rows),
            "draft_narrow": lambda: truth.narrow_ms(count, context),
            "prefill": lambda: truth.prefill_ms(query, context),
            "attention": lambda: truth.attention_ms(count, query, context),
            "skew": lambda: _skewed_ms(truth, groups),
            "chain": lambda: self._draft_ms(truth, count, query, context),
            "round": lambda: self._round_ms(truth, count, query, context, point.mode),
        }
        if point.phase in known:
            return known[point.phase]()
        attention = sum(_attention_ms(truth, group) for group in groups)
        layers_ms = truth.dense_ms(rows, point.mode) + attention + truth.kv_update_ms(rows)
        return (
            layers_ms if point.phase == "body" else layers_ms + truth.head_ms(sum(group.logit_rows for group in groups))
        )

    def _draft_ms(self, truth: Truth, batch: int, query: int, context: float) -> float:
        """A chain of query - 1 drafts after a round of `query` rows a request."""
        first = truth.first_ms(batch * query) + truth.narrow_ms(batch, context) - truth.narrow_ms(batch, 16)
        return first + (query - 2) * truth.narrow_ms(batch, context)

    def _round_ms(self, truth: Truth, batch: int, query: int, context: float, mode: str) -> float:
        rows = batch * query
        target = truth.dense_ms(rows, mode) + truth.head_ms(rows) + truth.attention_ms(batch, query, context)
        around = truth.kv_update_ms(rows) + truth.sampling_ms(batch, query) + truth.host_ms(batch)
        return target + around + (self._draft_ms(truth, batch, query, context) if query > 1 else 0.0)

    def _live(self, point: Point, draw: np.random.Generator) -> Measurement:
        batch, query, context = point.group
        drafts, contexts, steps = query - 1, np.full(batch, context), []
        for _ in range(self._live_steps):
            runs = draw.random((batch, drafts)) < point.value
            accepted = np.cumprod(runs, axis=1).sum(axis=1)
            ms = self._round_ms(self.truth(point.layers), batch, query, float(contexts.mean()), point.mode)
            ms *= float(np.exp(self._noise * draw.standard_normal()))
            steps.append([ms, int(contexts.sum()), int(accepted.sum() + batch)])
            contexts = contexts + accepted + 1
        times = [step[0] for step in steps]
        median = float(np.median(times))
        sample = Sample(median, float(np.mean(times)), 0.0, min(times), max(times), len(times), "converged")
        return Measurement(sample, {"steps": steps})


def _attention_ms(truth: Truth, group: Group) -> float:
    if group.is_chunk:
        return group.count * truth.prefill_ms(group.query, group.context)
    return truth.attention_ms(*group)


def _skewed_ms(truth: Truth, groups: tuple[Group, ...]) -> float:
    """Requests of unlike contexts in one call: bytes add up, a long request makes it a little longer."""
    count = sum(group.count for group in groups)
    mean = sum(group.count * group.context for group in groups) / count
    longest = max(group.context for group in groups)
    return truth.attention_ms(count, groups[0].query, mean) * (1 + 0.01 * log2(max(1.0, longest / mean)))
