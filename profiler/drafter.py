"""A chain drafter with real passes: a first one over all rows of the step, then one row a request for each more draft.

The first pass runs over the target's rows shifted by one token, so that the draft's cache follows what was accepted.
An EAGLE-type head reads the target's hidden states beside the tokens, and then its own.
"""

from __future__ import annotations

import torch

from .kv_cache import KVCache
from .model import Decoder
from .passes import Passes, Places

Proposal = tuple[torch.Tensor, torch.Tensor]  # hidden states [batch, hidden] and the most likely tokens [batch]


class Drafter:
    """k: drafts of a round, at least 1."""

    def __init__(self, model: Decoder, cache: KVCache, batch: int, k: int, passes: Passes) -> None:
        self._model, self._cache, self._batch, self.k, self._passes = model, cache, batch, k, passes
        self._places = Places(model, cache, passes)
        self._shift = 0 if model.dims.fusion else 1  # where a row stands beside its token

    def propose(
        self, hidden: torch.Tensor, tokens: torch.Tensor, accepted: torch.Tensor, computed: torch.Tensor
    ) -> torch.Tensor:
        """k drafts of each request, [batch, k], after a round.

        hidden: the target's states of the round's rows; tokens: [batch, k + 1], as committed; accepted: [batch];
        computed: [batch], tokens after the round.
        """
        return self._chain(self.first(hidden, tokens, accepted, computed), computed)

    def first(
        self, hidden: torch.Tensor, tokens: torch.Tensor, accepted: torch.Tensor, computed: torch.Tensor
    ) -> Proposal:
        """The first pass after a round, over its rows."""
        model, width = self._model, tokens.shape[1]
        batch = self._places.at(width, computed - accepted - 1 + self._shift)
        rows, last = self._passes.fixed("tokens", tokens), self._passes.fixed("accepted", accepted)
        states = self._passes.fixed("states", hidden) if model.dims.fusion else None

        def program() -> Proposal:
            out = model.run_layers(rows.flatten(), batch, self._cache, states)
            own = out[torch.arange(self._batch, device=last.device) * width + last]
            return own, model.logits(own).argmax(-1)

        return self._passes.run(("first", width), program)

    def narrow(self, before: Proposal, at: torch.Tensor) -> Proposal:
        """One row a request, at positions `at` [batch]."""
        model = self._model
        batch = self._places.at(1, at)
        rows = self._passes.fixed("narrow tokens", before[1])
        states = self._passes.fixed("narrow states", before[0]) if model.dims.fusion else None

        def program() -> Proposal:
            out = model.run_layers(rows, batch, self._cache, states)
            return out, model.logits(out).argmax(-1)

        return self._passes.run(("narrow",), program)

    def prefill(self, prompts: torch.Tensor, states: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """The draft's own prompt, then k drafts. prompts: [batch, tokens]; first: the token after them, [batch]."""
        model, cache, length = self._model, self._cache, prompts.shape[1]
        start = torch.zeros_like(first)
        if model.dims.fusion:
            shifted = torch.cat([prompts[:, 1:], first[:, None]], dim=1)
            batch = self._places.new(length, start)
            out = model.run_layers(shifted.flatten(), batch, cache, states)
            out = out.view(self._batch, length, -1)[:, -1]
        else:
            model.run_layers(prompts.flatten(), self._places.new(length, start), cache)
            out = model.run_layers(first, self._places.new(1, start + length), cache)
        return self._chain((out, model.logits(out).argmax(-1)), start + length)

    def _chain(self, proposal: Proposal, computed: torch.Tensor) -> torch.Tensor:
        drafts = [proposal[1].clone()]  # a replayed pass writes where the one before did
        for place in range(self.k - 1):
            proposal = self.narrow(proposal, computed + self._shift + place)
            drafts.append(proposal[1].clone())
        return torch.stack(drafts, dim=1)
