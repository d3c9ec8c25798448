"""Speculative decoding of a fixed batch with real passes: verify, accept, commit, draft anew. As vLLM orders a step.

The draft's first pass runs over the same rows as the target's, shifted by one token, so that its cache follows the
accepted tokens; k - 1 passes of one row a request follow. Rolling back is a matter of lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from . import sampling
from .batch import Batch, make_batch, set_lengths
from .kv_cache import KVCache
from .model import Decoder

RunProgram = Callable[[tuple[object, ...], Callable[[], object]], object]


def sampled(
    logits: torch.Tensor, drafts: torch.Tensor, generator: torch.Generator | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rejection sampling of drafts that were the draft's most likely tokens. logits: [batch, k + 1, vocabulary]."""
    device = logits.device
    uniforms = torch.rand(drafts.shape, generator=generator, device=device)
    noise = torch.empty(len(logits), logits.shape[2], device=device).exponential_(generator=generator)
    return sampling.rejection(logits, drafts, uniforms, noise)


class Commit(NamedTuple):
    """What one round delivered. tokens: [batch, k + 1], of which the first accepted + 1 count; accepted: on the host."""

    tokens: torch.Tensor
    accepted: list[int]


class Coin(NamedTuple):
    """Accepted drafts by a seeded coin instead of logits: each draft with this probability until one fails."""

    probability: float
    generator: torch.Generator


def run_eagerly(_: tuple[object, ...], program: Callable[[], object]) -> object:
    """A pass as it is; a device with graphs captures it once under its key and replays it."""
    return program()


class Speculator:
    """k: drafts of a round, 0 for plain decoding. coin: None accepts by logits, greedily or by rejection sampling.

    most_tokens: keys reserved for each request, where captured passes need that to be fixed.
    """

    def __init__(
        self,
        target: Decoder,
        target_cache: KVCache,
        draft: Decoder | None,
        draft_cache: KVCache | None,
        batch: int,
        k: int,
        *,
        coin: Coin | None = None,
        is_greedy: bool = True,
        run: RunProgram = run_eagerly,
        most_tokens: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.target, self.target_cache, self.draft, self.draft_cache = target, target_cache, draft, draft_cache
        self.batch, self.k, self.coin, self.is_greedy, self.run = batch, k, coin, is_greedy, run
        self.most_tokens = most_tokens
        self._device = target.embedding.device
        self._generator = generator
        self.shift = 0 if draft is not None and draft.dims.fusion else 1  # where a draft's row stands beside its token's
        self.computed = torch.zeros(batch, dtype=torch.long, device=self._device)
        self.rows = torch.zeros(batch, k + 1, dtype=torch.long, device=self._device)  # last token, then its drafts
        self._verified: Batch | None = None
        self._first: Batch | None = None
        self._narrow: Batch | None = None

    def prefill(self, prompts: torch.Tensor) -> torch.Tensor:
        """Prompts [batch, tokens] of one length; returns the first token of each, greedily, and drafts anew."""
        length = prompts.shape[1]
        start = torch.zeros(self.batch, dtype=torch.long, device=self._device)
        batch = self._make(self.target, self.target_cache, length, start)
        hidden = self.target.run_layers(prompts.flatten(), batch, self.target_cache)
        states = hidden.view(self.batch, length, -1)
        first = self.target.logits(states[:, -1]).argmax(-1)
        self.computed = start + length
        self.rows[:, 0] = first
        if self.k:
            self._prefill_draft(prompts, states, first)
        return first

    def start_at(self, context: int, tokens: torch.Tensor) -> None:
        """Stand at a context without computing it: the cache holds random numbers. tokens: [batch, k + 1]."""
        self.computed = torch.full((self.batch,), context, dtype=torch.long, device=self._device)
        self.rows.copy_(tokens)

    def plan_verification(self) -> None:
        """Host work of a step: where its rows stand."""
        self._verified = self._placed(self._verified, self.target, self.target_cache, self.k + 1, self.computed)

    def verify(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The target's pass: hidden states [batch * (k + 1), hidden] and logits of all rows."""
        batch = self._verified
        assert batch is not None

        def program() -> tuple[torch.Tensor, torch.Tensor]:
            hidden = self.target.run_layers(self.rows.flatten(), batch, self.target_cache)
            return hidden, self.target.logits(hidden)

        return self.run(("verify", self.batch, self.k), program)  # type: ignore[return-value]

    def accept(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Accepted drafts and the token after them, [batch] each, on the device."""
        shaped, drafts = logits.view(self.batch, self.k + 1, -1), self.rows[:, 1:]
        if self.is_greedy and self.coin is None:
            return sampling.greedy(shaped, drafts)

        def program() -> tuple[torch.Tensor, torch.Tensor]:
            return sampled(shaped, drafts, self._generator)

        accepted, token = self.run(("accept", self.batch, self.k), program)  # type: ignore[misc]
        if self.coin is not None:
            flips = torch.rand(drafts.shape, generator=self.coin.generator).to(self._device) < self.coin.probability
            accepted = flips.long().cumprod(1).sum(1)
        return accepted, token

    def commit(self, accepted: torch.Tensor, token: torch.Tensor) -> Commit:
        """Append what was accepted and the token after it. Asks the device for the counts, as an engine does."""
        drafts, before = self.rows[:, 1:], self.computed
        tokens = torch.cat([drafts, token[:, None]], dim=1)
        tokens.scatter_(1, accepted[:, None], token[:, None])
        counts = accepted.tolist()
        self.computed = before + accepted + 1
        return Commit(tokens, counts)

    def draft_anew(self, hidden: torch.Tensor, tokens: torch.Tensor, accepted: torch.Tensor) -> None:
        """k new drafts: a first pass over the step's rows, then narrow ones. tokens: as committed."""
        states, proposed = self.draft_first(hidden, tokens, accepted)
        drafts = [proposed]
        for place in range(1, self.k):
            states, proposed = self.draft_narrow(proposed, states, self.computed + self.shift + place - 1)
            drafts.append(proposed)
        token = tokens.gather(1, accepted[:, None])[:, 0]
        self.rows.copy_(torch.stack([token, *drafts], dim=1))

    def draft_first(
        self, hidden: torch.Tensor, tokens: torch.Tensor, accepted: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The first pass after a round: states and proposals, [batch, …]. Lengths are those after the round."""
        assert self.draft is not None and self.draft_cache is not None
        before = self.computed - accepted - 1 + self.shift
        self._first = self._placed(self._first, self.draft, self.draft_cache, self.k + 1, before)
        return self._first_pass(tokens, accepted, hidden if self.draft.dims.fusion else None)

    def draft_narrow(
        self, tokens: torch.Tensor, states: torch.Tensor, at: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One row a request, at positions `at`: states and proposals."""
        assert self.draft is not None and self.draft_cache is not None
        self._narrow = self._placed(self._narrow, self.draft, self.draft_cache, 1, at)
        return self._narrow_pass(tokens, states)

    def step(self) -> Commit:
        """One round."""
        self.plan_verification()
        hidden, logits = self.verify()
        accepted, token = self.accept(logits)
        committed = self.commit(accepted, token)
        if self.k:
            self.draft_anew(hidden, committed.tokens, accepted)
        else:
            self.rows[:, 0] = token
        return committed

    def _first_pass(
        self, tokens: torch.Tensor, accepted: torch.Tensor, features: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        draft, cache, batch = self.draft, self.draft_cache, self._first
        assert draft is not None and cache is not None and batch is not None
        rows, last = self._fixed("first tokens", tokens), self._fixed("accepted", accepted)
        states = None if features is None else self._fixed("features", features)

        def program() -> tuple[torch.Tensor, torch.Tensor]:
            hidden = draft.run_layers(rows.flatten(), batch, cache, states)
            index = torch.arange(self.batch, device=self._device) * (self.k + 1) + last
            own = hidden[index]
            return own, draft.logits(own).argmax(-1)

        return self.run(("first", self.batch, self.k), program)  # type: ignore[return-value]

    def _narrow_pass(self, tokens: torch.Tensor, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        draft, cache, batch = self.draft, self.draft_cache, self._narrow
        assert draft is not None and cache is not None and batch is not None
        rows = self._fixed("narrow tokens", tokens)
        features = self._fixed("narrow states", states) if draft.dims.fusion else None

        def program() -> tuple[torch.Tensor, torch.Tensor]:
            hidden = draft.run_layers(rows, batch, cache, features)
            return hidden, draft.logits(hidden).argmax(-1)

        hidden, proposed = self.run(("narrow", self.batch), program)  # type: ignore[misc]
        return (hidden, proposed) if self.run is run_eagerly else (hidden.clone(), proposed.clone())

    def _prefill_draft(self, prompts: torch.Tensor, states: torch.Tensor, first: torch.Tensor) -> None:
        """The draft's own prompt, then its first drafts."""
        draft, cache = self.draft, self.draft_cache
        assert draft is not None and cache is not None
        length, start = prompts.shape[1], torch.zeros_like(self.computed)
        shifted = torch.cat([prompts[:, 1:], first[:, None]], dim=1)
        if draft.dims.fusion:
            batch = self._make(draft, cache, length, start)
            hidden = draft.run_layers(shifted.flatten(), batch, cache, states.flatten(0, 1))
            hidden = hidden.view(self.batch, length, -1)[:, -1]
        else:
            batch = self._make(draft, cache, length, start)
            draft.run_layers(prompts.flatten(), batch, cache)
            batch = self._make(draft, cache, 1, start + length)
            hidden = draft.run_layers(first, batch, cache)
        drafts = [draft.logits(hidden).argmax(-1)]
        for place in range(1, self.k):
            batch = self._make(draft, cache, 1, self.computed + self.shift + place - 1)
            hidden = draft.run_layers(drafts[-1], batch, cache, hidden if draft.dims.fusion else None)
            drafts.append(draft.logits(hidden).argmax(-1))
        self.rows.copy_(torch.stack([first, *drafts], dim=1))

    def _fixed(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Where passes are captured, inputs are copied to where the graph reads them."""
        if self.run is run_eagerly:
            return value
        buffers: dict[str, torch.Tensor] = self.__dict__.setdefault("_buffers", {})
        if name not in buffers:
            buffers[name] = value.clone()
        return buffers[name].copy_(value)

    def _make(self, model: Decoder, cache: KVCache, query: int, computed: torch.Tensor) -> Batch:
        batch = make_batch(cache, [(query, 0, computed)], with_mask=model.attention.needs_mask)
        model.prepare(batch)
        return batch

    def _placed(
        self, known: Batch | None, model: Decoder, cache: KVCache, query: int, computed: torch.Tensor
    ) -> Batch:
        """A batch at these lengths: a new one, or the known one moved where captured passes read it."""
        if known is not None and self.most_tokens is not None:
            set_lengths(known, cache, computed)
            return known
        mask = model.attention.needs_mask
        batch = make_batch(cache, [(query, 0, computed)], with_mask=mask, most=self.most_tokens)
        model.prepare(batch)
        return batch
