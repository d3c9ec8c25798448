"""Attention of a few new rows over cached keys and values, by whichever kernel the machine has.

A row attends to every key up to its own: with more keys than rows the causal rule is aligned to the lower right.
Each back end is held against float64 before it is used; one that fails is left out, and the reason is kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own convention)

from .batch import Segment, make_batch
from .errors import ProfileError
from .kv_cache import PAGE, KVCache, make_cache

LARGE_PAGE = 256
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


class Attention(Protocol):
    """A back end. paged: it reads pages, of `page` tokens; needs_mask: segments have to bring one.

    follows_lengths: a captured graph sees lengths that are changed in place, as it has to where contexts grow.
    """

    name: str
    paged: bool
    page: int
    needs_mask: bool
    follows_lengths: bool

    def prepare(self, segments: list[Segment], heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        """Host work before a pass, where a back end has some."""

    def __call__(self, query: torch.Tensor, cache: KVCache, layer: int, segment: Segment) -> torch.Tensor:
        """query, result: [rows, heads, head_dim]."""


class SdpaAttention:
    """torch's scaled dot product over the slice of the cache that is in use; pages, where there are, are copied."""

    name = "sdpa"
    page = PAGE
    needs_mask = True
    follows_lengths = False

    def __init__(self, paged: bool = False) -> None:
        self.paged = paged

    def prepare(self, segments: list[Segment], heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        """Nothing."""

    def __call__(self, query: torch.Tensor, cache: KVCache, layer: int, segment: Segment) -> torch.Tensor:
        """See `Attention`."""
        rows, heads, width = query.shape
        keys, values = cache.prefix(layer, segment.first, segment.count, segment.most)
        shaped = query.view(segment.count, segment.query, heads, width).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            shaped, keys, values, attn_mask=segment.mask, enable_gqa=heads != keys.shape[1]
        )
        return out.transpose(1, 2).reshape(rows, heads, width)


class FlexAttention:
    """FlexAttention over the slice in use, compiled, with the decoding kernel for few rows."""

    name = "flex"
    page = PAGE
    needs_mask = False
    paged = False
    follows_lengths = False

    def __init__(self, compiled: bool = True) -> None:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        self._flex: Callable[..., Any] = torch.compile(flex_attention, dynamic=False) if compiled else flex_attention
        self._block_mask = create_block_mask
        self._masks: dict[int, Any] = {}

    def prepare(self, segments: list[Segment], heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        """Block masks of the segments."""
        self._masks = {id(segment): self._mask(segment) for segment in segments}

    def _mask(self, segment: Segment) -> Any:
        used, query = segment.used, segment.query

        def allowed(batch: Any, head: Any, row: Any, key: Any) -> Any:
            return key <= used[batch] - query + row

        sizes = (segment.count, None, query, segment.most)
        return self._block_mask(allowed, *sizes, device=str(used.device))

    def __call__(self, query: torch.Tensor, cache: KVCache, layer: int, segment: Segment) -> torch.Tensor:
        """See `Attention`."""
        rows, heads, width = query.shape
        keys, values = cache.prefix(layer, segment.first, segment.count, segment.most)
        shaped = query.view(segment.count, segment.query, heads, width).transpose(1, 2)
        mask = self._masks.get(id(segment)) or self._mask(segment)
        out = self._flex(shaped, keys, values, block_mask=mask, enable_gqa=heads != keys.shape[1])
        result: torch.Tensor = out.transpose(1, 2).reshape(rows, heads, width)
        return result


class VarlenAttention:
    """torch's variable-length flash attention over pages; kernels of older cards want large ones."""

    paged = True
    needs_mask = False
    follows_lengths = True

    def __init__(self, page: int = PAGE) -> None:
        self.page = page
        self.name = "varlen" if page == PAGE else f"varlen-{page}"
        from torch.nn.attention.varlen import varlen_attn

        known = inspect.signature(varlen_attn).parameters
        lacking = [name for name in ("block_table", "seqused_k", "window_size", "enable_gqa") if name not in known]
        if lacking:
            raise RuntimeError(f"varlen_attn of torch {torch.__version__} has no {', '.join(lacking)}")
        self._attend: Callable[..., Any] = varlen_attn

    def prepare(self, segments: list[Segment], heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        """Nothing."""

    def __call__(self, query: torch.Tensor, cache: KVCache, layer: int, segment: Segment) -> torch.Tensor:
        """See `Attention`."""
        keys, values = cache.pages(layer)
        out: torch.Tensor = self._attend(
            query.contiguous(),
            keys,
            values,
            segment.starts,
            None,
            segment.query,
            segment.most,
            window_size=(-1, 0),
            enable_gqa=query.shape[1] != keys.shape[2],
            seqused_k=segment.used,
            block_table=segment.pages,
        )
        return out


class FlashInferAttention:
    """FlashInfer's paged attention, which serving engines deploy; its plan is host work."""

    name = "flashinfer"
    page = PAGE
    paged = True
    needs_mask = False
    follows_lengths = False

    def __init__(self, device: str) -> None:
        import flashinfer  # type: ignore[import-not-found,unused-ignore]

        self._flashinfer = flashinfer
        self._workspace = torch.empty(128 * 2**20, dtype=torch.uint8, device=device)
        self._planned: dict[int, Any] = {}

    def prepare(self, segments: list[Segment], heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        """Plan the kernels of the segments."""
        self._planned = {}
        for segment in segments:
            pages = -(-segment.used // PAGE)
            ends = torch.cumsum(pages, 0, dtype=torch.int32)
            starts = torch.cat([ends.new_zeros(1), ends])
            numbers = torch.cat([row[:n] for row, n in zip(segment.pages, pages.tolist(), strict=True)])
            last = (segment.used - 1) % PAGE + 1
            wrapper = self._flashinfer.BatchPrefillWithPagedKVCacheWrapper(self._workspace, "NHD")
            shape = (heads, kv_heads, head_dim, PAGE)
            wrapper.plan(segment.starts, starts, numbers, last, *shape, causal=True, q_data_type=dtype)
            self._planned[id(segment)] = wrapper

    def __call__(self, query: torch.Tensor, cache: KVCache, layer: int, segment: Segment) -> torch.Tensor:
        """See `Attention`."""
        out: torch.Tensor = self._planned[id(segment)].run(query, cache.pages(layer))
        return out


def reference(query: torch.Tensor, cache: KVCache, layer: int, segment: Segment) -> torch.Tensor:
    """The same in float64, by the definition."""
    rows, heads, width = query.shape
    keys, values = (part.double() for part in cache.prefix(layer, segment.first, segment.count, segment.most))
    groups = heads // keys.shape[1]
    keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
    shaped = query.double().view(segment.count, segment.query, heads, width).transpose(1, 2)
    scores = shaped @ keys.transpose(2, 3) / width**0.5
    last = segment.used[:, None].long() - segment.query + torch.arange(segment.query, device=query.device)
    allowed = torch.arange(segment.most, device=query.device) <= last[:, :, None]
    scores = scores.masked_fill(~allowed[:, None], float("-inf"))
    return (scores.softmax(-1) @ values).transpose(1, 2).reshape(rows, heads, width)


def error_of(attention: Attention, dtype: torch.dtype, device: str, heads: int = 8, kv_heads: int = 2) -> float:
    """Largest difference from float64 on rows of unlike requests, relative to the largest value."""
    shape = (1, kv_heads, 64, 3, 96)
    cache = make_cache(*shape, dtype=dtype, device=device, paged=attention.paged, seed=5, page=attention.page)
    worst = 0.0
    for query in (1, 4):
        computed = torch.tensor([1, 37, 80], device=device)
        batch = make_batch(cache, [(query, 0, computed)], with_mask=attention.needs_mask)
        generator = torch.Generator(device=device).manual_seed(query)
        rows = torch.empty(3 * query, heads, 64, dtype=dtype, device=device).normal_(generator=generator)
        attention.prepare(batch.segments, heads, kv_heads, 64, dtype)
        found = attention(rows, cache, 0, batch.segments[0]).double()
        expected = reference(rows, cache, 0, batch.segments[0])
        worst = max(worst, float((found - expected).abs().max() / expected.abs().max()))
    return worst


def choose_attention(
    wanted: str, dtype: torch.dtype, device: str, heads: int = 8, kv_heads: int = 2
) -> tuple[Attention, dict[str, str]]:
    """The first back end that works, or the one that is asked for; and why others were left out.

    On a GPU one that follows lengths comes first: whole rounds can then be replayed as graphs.
    Raises ProfileError where the one that is asked for does not work here.
    """
    makers: dict[str, Callable[[], Attention]] = {
        "varlen": VarlenAttention,
        f"varlen-{LARGE_PAGE}": lambda: VarlenAttention(LARGE_PAGE),
        "flashinfer": lambda: FlashInferAttention(device),
        "flex": FlexAttention,
        "sdpa": SdpaAttention,
    }
    if wanted not in (*makers, "auto"):
        rule = f"back ends are {', '.join(makers)}"
        raise ProfileError("specsim profile", "--backend", f"unknown {wanted!r}", rule, "name one or auto")
    names = [wanted] if wanted != "auto" else (list(makers) if device == "cuda" else ["sdpa"])
    left_out: dict[str, str] = {}
    for name in names:
        try:
            attention = makers[name]()
            error = error_of(attention, dtype, device, heads, kv_heads)
        except Exception as failure:  # kernels fail in their own ways
            left_out[name] = " ".join(f"{type(failure).__name__}: {failure}".split())[:200]
            continue
        if error <= TOLERANCE[dtype]:
            return attention, left_out
        left_out[name] = f"differs from float64 by {error:.2g}"
    reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
    rule = "a back end must agree with float64"
    raise ProfileError("specsim profile", "--backend", f"none works here ({reasons})", rule, "choose another")
