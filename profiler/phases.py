"""What is timed for each phase: from a point to a call over models that are in memory.

The clock knows nothing of models and this module nothing of clocks, except whether a call is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from .batch import Batch, make_batch
from .clock import Call, Clock
from .drafter import Drafter
from .kv_cache import KVCache
from .model import Decoder
from .passes import CapturedPasses, EagerPasses, Passes
from .point import Group, Point
from .speculator import Coin, Speculator, sampled

COLD = ("attention", "prefill", "skew", "kv_update", "head")  # whose data a real step has evicted meanwhile
ON_THE_WALL = ("host", "round")


@dataclass(slots=True)
class Ready:
    """A call that can be timed. why_eager: why it is not the graph that was asked for. bytes, flops: of a ceiling."""

    call: Call
    why_eager: str | None = None
    bytes: float = 0.0
    flops: float = 0.0


@dataclass(slots=True)
class Models:
    """Target and draft with their caches, on one device. depth: layers of the target a point runs through."""

    target: Decoder
    target_cache: KVCache
    draft: Decoder | None
    draft_cache: KVCache | None
    device: str
    seed: int

    def tokens(self, *shape: int) -> torch.Tensor:
        """Random tokens."""
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randint(self.target.dims.vocab, shape, generator=generator).to(self.device)

    def random(self, *shape: int) -> torch.Tensor:
        """Normal numbers in the dtype of activations."""
        return torch.randn(*shape, device=self.device).to(self.target.dtype)

    def at_depth(self, layers: int) -> Decoder:
        """The target, or its first layers."""
        if not layers or layers == self.target.dims.layers:
            return self.target
        shallow = object.__new__(Decoder)
        shallow.__dict__ |= self.target.__dict__
        shallow.dims, shallow.layers = self.target.dims.at_depth(layers), self.target.layers[:layers]
        return shallow


def batch_of(models: Models, model: Decoder, cache: KVCache, groups: Sequence[Group]) -> Batch:
    """The rows of a point's groups, in requests of their own."""
    first, parts = 0, []
    for group in groups:
        parts.append((group.query, first, torch.full((group.count,), group.context, device=models.device)))
        first += group.count
    batch = make_batch(cache, parts, with_mask=model.attention.needs_mask)
    model.prepare(batch)
    return batch


def ready(models: Models, clock: Clock, point: Point) -> Ready:
    """The call of a point, captured where its mode says so."""
    if point.phase in ("copy", "product"):
        return _ceiling(models, point)
    maker = _MAKERS[point.phase]
    call = maker(models, clock, point)
    if point.mode == "eager":
        return Ready(call)
    if point.phase not in _HOLD_GRAPHS:
        return Ready(clock.captured(call).call)
    attention = models.target.attention
    return Ready(call, None if attention.follows_lengths else f"{attention.name} sees no lengths that change in place")


def _ceiling(models: Models, point: Point) -> Ready:
    on_gpu, dtype = models.device != "cpu", models.target.dtype
    if point.phase == "copy":
        size = 2**30 if on_gpu else 2**26
        source = torch.empty(size, dtype=torch.uint8, device=models.device).fill_(1)
        target = torch.empty_like(source)
        return Ready(lambda: target.copy_(source), bytes=2.0 * size)
    size = 8192 if on_gpu else 512
    one, two = models.random(size, size), models.random(size, size)
    out = torch.empty(size, size, dtype=dtype, device=models.device)
    return Ready(lambda: torch.mm(one, two, out=out), flops=2.0 * size**3)


def _layers(models: Models, _: Clock, point: Point) -> Call:
    model = models.at_depth(point.layers)
    batch = batch_of(models, model, models.target_cache, point.groups)
    tokens = models.tokens(point.rows)
    return lambda: model.run_layers(tokens, batch, models.target_cache)


def _mixed(models: Models, _: Clock, point: Point) -> Call:
    model = models.at_depth(point.layers)
    batch = batch_of(models, model, models.target_cache, point.groups)
    tokens, last, first = models.tokens(point.rows), [], 0
    for group in point.groups:
        step = group.query if group.is_chunk else 1
        last += list(range(first + step - 1, first + group.rows, step))
        first += group.rows
    index = torch.tensor(last, device=models.device)

    def call() -> torch.Tensor:
        return model.logits(model.run_layers(tokens, batch, models.target_cache)[index])

    return call


def _head(models: Models, _: Clock, point: Point) -> Call:
    hidden = models.random(point.rows, models.target.dims.hidden)
    return lambda: models.target.logits(hidden)


def _attention(models: Models, _: Clock, point: Point) -> Call:
    model = models.at_depth(point.layers)
    batch = batch_of(models, model, models.target_cache, point.groups)
    query = models.random(point.rows, model.dims.heads, model.dims.head_dim)
    return lambda: model.attend_only(query, batch, models.target_cache)


def _kv_update(models: Models, _: Clock, point: Point) -> Call:
    model = models.at_depth(point.layers)
    batch = batch_of(models, model, models.target_cache, point.groups)
    keys, values = (models.random(point.rows, model.dims.kv_heads, model.dims.head_dim) for _ in range(2))
    return lambda: model.update_only(keys, values, batch, models.target_cache)


def _sampling(models: Models, _: Clock, point: Point) -> Call:
    batch, query, _context = point.group
    logits = models.random(batch, query, models.target.dims.vocab)
    drafts = models.tokens(batch, query)[:, 1:]
    generator = generator_on(models.device, models.seed)
    return lambda: sampled(logits, drafts, generator)


def _draft_first(models: Models, clock: Clock, point: Point) -> Call:
    batch, query, context = point.group
    if not point.group.is_chunk:
        drafter = _drafter(models, _passes(models, clock, point), batch, max(1, query - 1))
        hidden, tokens, accepted, computed = _after_a_round(models, batch, query, context)
        return lambda: drafter.first(hidden, tokens, accepted, computed)
    draft, cache = _draft(models)
    rows = batch_of(models, draft, cache, point.groups)
    inputs, states = models.tokens(point.rows), models.random(point.rows, draft.dims.hidden)
    features = states if draft.dims.fusion else None

    def call() -> torch.Tensor:
        return draft.logits(draft.run_layers(inputs, rows, cache, features)[-1:]).argmax(-1)

    return call if point.mode == "eager" else clock.captured(call).call


def _draft_narrow(models: Models, clock: Clock, point: Point) -> Call:
    batch, _query, context = point.group
    drafter = _drafter(models, _passes(models, clock, point), batch, 1)
    before = models.random(batch, _draft(models)[0].dims.hidden), models.tokens(batch)
    at = torch.full((batch,), context, device=models.device)
    return lambda: drafter.narrow(before, at)


def _chain(models: Models, clock: Clock, point: Point) -> Call:
    batch, query, context = point.group
    drafter = _drafter(models, _passes(models, clock, point), batch, query - 1)
    arguments = _after_a_round(models, batch, query, context)
    return lambda: drafter.propose(*arguments)


def _host(models: Models, clock: Clock, point: Point) -> Call:
    """Counts to the host, lengths and places of the next verification."""
    speculator = _speculator(models, clock, point)
    batch, _query, context = point.group
    accepted = torch.zeros(batch, dtype=torch.long, device=models.device)
    token = models.tokens(batch)
    base = torch.full((batch,), context, device=models.device)

    def call() -> None:
        speculator.computed = base
        speculator.commit(accepted, token)
        speculator.plan_verification()

    return call


def _sentinel(models: Models, clock: Clock, point: Point) -> Call:
    speculator = _speculator(models, clock, point)
    speculator.plan_verification()
    return speculator.verify


def _round(models: Models, clock: Clock, point: Point) -> Call:
    speculator = _speculator(models, clock, point, Coin(0.7, torch.Generator().manual_seed(models.seed)))
    context, rows = point.group.context, models.tokens(point.group.count, point.group.query)

    def call() -> None:
        speculator.start_at(context, rows)
        speculator.step()

    return call


def live_speculator(models: Models, clock: Clock, point: Point) -> Speculator:
    """The loop of a live point, at its context, whose coin accepts with the point's value."""
    return _speculator(models, clock, point, Coin(point.value, torch.Generator().manual_seed(models.seed)))


def _speculator(models: Models, clock: Clock, point: Point, coin: Coin | None = None) -> Speculator:
    batch, query, context = point.group
    passes = _passes(models, clock, point)
    speculator = Speculator(
        models.at_depth(point.layers),
        models.target_cache,
        batch,
        _drafter(models, passes, batch, query - 1) if query > 1 and models.draft else None,
        coin=coin,
        is_greedy=False,
        passes=passes,
        generator=generator_on(models.device, models.seed),
    )
    speculator.start_at(context, models.tokens(batch, speculator.k + 1))
    return speculator


def _passes(models: Models, clock: Clock, point: Point) -> Passes:
    """Captured where the point asks for graphs and attention sees lengths that change in place."""
    if point.mode == "graph" and models.target.attention.follows_lengths:
        return CapturedPasses(clock, models.target_cache.per_request)
    return EagerPasses()


def _drafter(models: Models, passes: Passes, batch: int, k: int) -> Drafter:
    draft, cache = _draft(models)
    return Drafter(draft, cache, batch, k, passes)


def generator_on(device: str, seed: int) -> torch.Generator | None:
    """A generator of its own on a CPU; on a GPU torch's, which captured graphs know."""
    return torch.Generator().manual_seed(seed) if device == "cpu" else None


def _after_a_round(
    models: Models, batch: int, query: int, context: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hidden states, tokens, accepted counts and lengths as a round leaves them: all drafts but one accepted."""
    hidden = models.random(batch * query, models.target.dims.hidden)
    accepted = torch.full((batch,), max(0, query - 2), device=models.device)
    computed = torch.full((batch,), context, device=models.device) + accepted + 1
    return hidden, models.tokens(batch, query), accepted, computed


def _draft(models: Models) -> tuple[Decoder, KVCache]:
    if models.draft is None or models.draft_cache is None:
        raise ValueError("a point of drafting without a draft")
    return models.draft, models.draft_cache


_MAKERS: dict[str, Callable[[Models, Clock, Point], Call]] = {
    "body": _layers,
    "mixed": _mixed,
    "head": _head,
    "attention": _attention,
    "prefill": _attention,
    "skew": _attention,
    "kv_update": _kv_update,
    "sampling": _sampling,
    "draft_first": _draft_first,
    "draft_narrow": _draft_narrow,
    "chain": _chain,
    "host": _host,
    "sentinel": _sentinel,
    "round": _round,
}
_HOLD_GRAPHS = ("draft_first", "draft_narrow", "chain", "host", "sentinel", "round")  # they capture their own passes
