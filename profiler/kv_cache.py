"""Keys and values of a model: one flat pool of token slots a layer, which requests address by pages or by slices.

Paged: pages in a random order, so that no prefetcher is flattered. Where a batch needs more pages than
there are, pages repeat: what is read stays far beyond the caches. Rolling back a rejected draft costs nothing: lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

PAGE = 16


@dataclass(slots=True)
class KVCache:
    """layers: (keys, values) of each layer, [slots, kv_heads, head_dim]. table: the page numbers of each request.

    paged: whether pages are permuted; else a request's slots follow each other and `per_request` of them are its own.
    page: tokens of one.
    """

    layers: list[tuple[torch.Tensor, torch.Tensor]]
    table: torch.Tensor  # [requests, pages], page numbers
    per_request: int
    paged: bool
    page: int = PAGE

    def slots(self, requests: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Where tokens of requests at positions lie. Both [rows]."""
        page = torch.div(positions, self.page, rounding_mode="floor")
        return self.table[requests, page] * self.page + positions % self.page

    def pages(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values as [pages, tokens of a page, kv_heads, head_dim]."""
        keys, values = self.layers[layer]
        shape = (-1, self.page, *keys.shape[1:])
        return keys.view(shape), values.view(shape)

    def prefix(self, layer: int, first: int, count: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the first `tokens` of `count` requests, [count, kv_heads, tokens, head_dim]: a view.

        Of permuted pages it is a copy.
        """
        keys, values = self.layers[layer]
        if self.paged:
            index = self._index(first, count, tokens)
            return keys[index].transpose(1, 2), values[index].transpose(1, 2)
        shape = (-1, self.per_request, *keys.shape[1:])
        part = (slice(first, first + count), slice(0, tokens))
        return keys.view(shape)[part].transpose(1, 2), values.view(shape)[part].transpose(1, 2)

    def _index(self, first: int, count: int, tokens: int) -> torch.Tensor:
        places = torch.arange(tokens, device=self.table.device)
        return self.table[first : first + count, places // self.page] * self.page + places % self.page


def make_cache(
    layers: int,
    kv_heads: int,
    head_dim: int,
    requests: int,
    tokens: int,
    *,
    dtype: torch.dtype,
    device: str,
    paged: bool,
    seed: int,
    pool_tokens: int | None = None,
    page: int = PAGE,
) -> KVCache:
    """A cache of so many requests of so many tokens. pool_tokens: slots in all, by default one for each.

    Slots hold random numbers: attention over zeros runs at another speed.
    """
    pages_each = -(-tokens // page)
    wanted = requests * pages_each
    pages = wanted if pool_tokens is None or not paged else min(wanted, max(pages_each, pool_tokens // page))
    generator = torch.Generator(device=device).manual_seed(seed)
    pool = [
        (
            torch.empty(pages * page, kv_heads, head_dim, dtype=dtype, device=device).normal_(generator=generator),
            torch.empty(pages * page, kv_heads, head_dim, dtype=dtype, device=device).normal_(generator=generator),
        )
        for _ in range(layers)
    ]
    if paged:
        order = torch.randperm(pages, generator=generator, device=device)
        numbers = order.repeat(-(-wanted // pages))[:wanted]
    else:
        numbers = torch.arange(wanted, device=device)
    return KVCache(pool, numbers.view(requests, pages_each).to(torch.long), pages_each * page, paged, page)
