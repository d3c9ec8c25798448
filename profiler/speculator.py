"""Speculative decoding of a fixed batch with real passes: verify, accept, commit, draft anew. As vLLM orders a step.

Rolling back rejected drafts is a matter of lengths: their slots are written again by the next round.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from . import sampling
from .drafter import Drafter
from .kv_cache import KVCache
from .model import Decoder
from .passes import EagerPasses, Passes, Places


class Commit(NamedTuple):
    """What a round delivered: tokens [batch, k + 1], of which the first accepted + 1 count; accepted, on the host."""

    tokens: torch.Tensor
    accepted: list[int]


class Coin(NamedTuple):
    """Accepted drafts by a seeded coin instead of logits: each draft with this probability until one fails."""

    probability: float
    generator: torch.Generator


def sampled(
    logits: torch.Tensor, drafts: torch.Tensor, generator: torch.Generator | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rejection sampling of drafts that were the draft's most likely tokens. logits: [batch, k + 1, vocabulary]."""
    device = logits.device
    uniforms = torch.rand(drafts.shape, generator=generator, device=device)
    noise = torch.empty(len(logits), logits.shape[2], device=device).exponential_(generator=generator)
    return sampling.rejection(logits, drafts, uniforms, noise)


class Speculator:
    """drafter: None for plain decoding. coin: None accepts by logits, greedily or by rejection sampling."""

    def __init__(
        self,
        target: Decoder,
        cache: KVCache,
        batch: int,
        drafter: Drafter | None = None,
        *,
        coin: Coin | None = None,
        is_greedy: bool = True,
        passes: Passes | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.target, self.cache, self.batch, self.drafter = target, cache, batch, drafter
        self.coin, self.is_greedy, self.generator = coin, is_greedy, generator
        self.passes = passes or EagerPasses()
        self.k = drafter.k if drafter is not None else 0
        self._device = target.embedding.device
        self.places = Places(target, cache, self.passes)
        self.computed = torch.zeros(batch, dtype=torch.long, device=self._device)
        self.rows = torch.zeros(batch, self.k + 1, dtype=torch.long, device=self._device)  # last token, its drafts
        self.verified = self.places.at(self.k + 1, self.computed)

    def prefill(self, prompts: torch.Tensor) -> torch.Tensor:
        """Prompts [batch, tokens] of one length; returns the first token of each, greedily, and drafts anew."""
        length = prompts.shape[1]
        start = torch.zeros_like(self.computed)
        hidden = self.target.run_layers(prompts.flatten(), self.places.new(length, start), self.cache)
        first = self.target.logits(hidden.view(self.batch, length, -1)[:, -1]).argmax(-1)
        self.computed = start + length
        self.rows[:, 0] = first
        if self.drafter is not None:
            self.rows[:, 1:] = self.drafter.prefill(prompts, hidden, first)
        return first

    def start_at(self, context: int, tokens: torch.Tensor) -> None:
        """Stand at a context without computing it: the cache holds random numbers. tokens: [batch, k + 1]."""
        self.computed = torch.full((self.batch,), context, dtype=torch.long, device=self._device)
        self.rows.copy_(tokens)

    def plan_verification(self) -> None:
        """Host work of a step: where its rows stand."""
        self.verified = self.places.at(self.k + 1, self.computed)

    def verify(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The target's pass: hidden states [batch * (k + 1), hidden] and logits of all rows."""
        batch = self.verified

        def program() -> tuple[torch.Tensor, torch.Tensor]:
            hidden = self.target.run_layers(self.rows.flatten(), batch, self.cache)
            return hidden, self.target.logits(hidden)

        return self.passes.run(("verify",), program)

    def accept(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Accepted drafts and the token after them, [batch] each, on the device."""
        shaped, drafts = logits.view(self.batch, self.k + 1, -1), self.rows[:, 1:]
        if self.is_greedy and self.coin is None:
            return sampling.greedy(shaped, drafts)
        accepted, token = self.passes.run(("accept",), lambda: sampled(shaped, drafts, self.generator))
        if self.coin is not None:
            flips = torch.rand(drafts.shape, generator=self.coin.generator).to(self._device) < self.coin.probability
            accepted = flips.long().cumprod(1).sum(1)
        return accepted, token

    def commit(self, accepted: torch.Tensor, token: torch.Tensor) -> Commit:
        """Append what was accepted and the token after it. Asks the device for the counts, as an engine does."""
        tokens = torch.cat([self.rows[:, 1:], token[:, None]], dim=1)
        tokens.scatter_(1, accepted[:, None], token[:, None])
        counts = accepted.tolist()
        self.computed = self.computed + accepted + 1
        return Commit(tokens, counts)

    def step(self) -> Commit:
        """One round."""
        self.plan_verification()
        hidden, logits = self.verify()
        accepted, token = self.accept(logits)
        committed = self.commit(accepted, token)
        if self.drafter is not None:
            self.rows[:, 1:] = self.drafter.propose(hidden, committed.tokens, accepted, self.computed)
        self.rows[:, 0] = token
        return committed
