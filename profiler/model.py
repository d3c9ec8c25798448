"""A decoder of given dims with random weights: pre-norm, grouped-query attention, rotary positions, SwiGLU or experts.

Its parts can be run apart: all layers, the output head, attention alone, KV update alone. An EAGLE-type head is one of
these with an input layer over token and target state, and with the target's embedding and output head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own convention)

from .attention import Attention
from .batch import Batch
from .dims import Dims
from .kv_cache import KVCache
from .linear import Linear, PlainLinear, RandomWeights

ROPE_BASE = 500_000.0
EPSILON = 1e-5


class FeedForward:
    """SwiGLU with gate and up projection in one product."""

    def __init__(self, weights: RandomWeights, hidden: int, width: int) -> None:
        self.gate_up, self.down = weights.linear(2 * width, hidden), weights.linear(hidden, width)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[rows, hidden] to the same."""
        gate, up = self.gate_up(rows).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Experts:
    """A router and its experts; each expert runs over the rows that chose it, which takes a count from the device."""

    def __init__(self, weights: RandomWeights, dims: Dims) -> None:
        self.router = weights.head(dims.experts, dims.hidden)
        self.experts = [FeedForward(weights, dims.hidden, dims.expert_width) for _ in range(dims.experts)]
        self.per_token = dims.experts_per_token

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[rows, hidden] to the same."""
        share, chosen = self.router(rows).softmax(-1).topk(self.per_token, dim=-1)
        share = share / share.sum(-1, keepdim=True)
        out = torch.zeros_like(rows)
        flat = chosen.flatten()
        order = flat.argsort()
        ends = torch.bincount(flat, minlength=len(self.experts)).cumsum(0).tolist()
        first = 0
        for expert, end in zip(self.experts, ends, strict=True):
            if end > first:
                places = order[first:end]
                index = places // self.per_token
                out.index_add_(0, index, expert(rows[index]) * share.flatten()[places, None])
            first = end
        return out


class Layer:
    """One decoder layer."""

    def __init__(self, weights: RandomWeights, dims: Dims) -> None:
        width = dims.head_dim * (dims.heads + 2 * dims.kv_heads)
        self.qkv = weights.linear(width, dims.hidden)
        self.out = weights.linear(dims.hidden, dims.heads * dims.head_dim)
        self.feed_forward = (
            Experts(weights, dims) if dims.experts else FeedForward(weights, dims.hidden, dims.intermediate)
        )
        self.norms = [torch.ones(dims.hidden, dtype=weights.dtype, device=weights.device) for _ in range(2)]


class Decoder:
    """A model in memory. shared: the target, whose embedding and output head an EAGLE-type head uses."""

    def __init__(
        self,
        dims: Dims,
        dtype: str,
        device: str,
        attention: Attention,
        *,
        seed: int = 1,
        most_tokens: int = 4096,
        shared: Decoder | None = None,
    ) -> None:
        weights = RandomWeights(dtype, device, seed)
        self.dims, self.attention, self.dtype = dims, attention, weights.dtype
        self.embedding: torch.Tensor
        self.head: Linear
        if dims.fusion and shared is not None:
            self.embedding, self.head = shared.embedding, shared.head
        else:
            self.embedding = weights.tensor(dims.vocab, dims.hidden)
            self.head = PlainLinear(self.embedding) if dims.tied else weights.head(dims.vocab, dims.hidden)
        self.layers = [Layer(weights, dims) for _ in range(dims.layers)]
        self.norm = torch.ones(dims.hidden, dtype=weights.dtype, device=device)
        self.fusion = weights.linear(dims.hidden, 2 * dims.hidden) if dims.fusion else None
        self.cosine, self.sine = _rotary(dims.head_dim, most_tokens, weights.dtype, device)

    def run_layers(
        self, tokens: torch.Tensor, batch: Batch, cache: KVCache, features: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Hidden states [rows, hidden] before the final norm. features: target states, for an EAGLE-type head."""
        hidden = F.embedding(tokens, self.embedding)
        if self.fusion is not None:
            assert features is not None
            hidden = self.fusion(torch.cat([hidden, features], dim=-1))
        rotation = self.cosine[batch.positions, None], self.sine[batch.positions, None]
        for number, layer in enumerate(self.layers):
            hidden = hidden + layer.out(self._attend(layer, number, hidden, rotation, batch, cache))
            hidden = hidden + layer.feed_forward(self._normed(hidden, layer.norms[1]))
        return hidden

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Final norm and output head: [rows, vocabulary]."""
        return self.head(self._normed(hidden, self.norm))

    def attend_only(self, query: torch.Tensor, batch: Batch, cache: KVCache) -> torch.Tensor:
        """Attention of every layer, nothing else. query: [rows, heads, head_dim]."""
        for number in range(len(self.layers)):
            for segment in batch.segments:
                out = self.attention(query[segment.rows], cache, number, segment)
        return out

    def update_only(self, keys: torch.Tensor, values: torch.Tensor, batch: Batch, cache: KVCache) -> None:
        """KV update of every layer, nothing else. keys, values: [rows, kv_heads, head_dim]."""
        for number in range(len(self.layers)):
            _write(cache, number, batch.slots, keys, values)

    def prepare(self, batch: Batch) -> None:
        """The attention's host work before a pass."""
        dims = self.dims
        self.attention.prepare(batch.segments, dims.heads, dims.kv_heads, dims.head_dim, self.dtype)

    def _attend(
        self,
        layer: Layer,
        number: int,
        hidden: torch.Tensor,
        rotation: tuple[torch.Tensor, torch.Tensor],
        batch: Batch,
        cache: KVCache,
    ) -> torch.Tensor:
        dims = self.dims
        rows = layer.qkv(self._normed(hidden, layer.norms[0])).view(len(hidden), -1, dims.head_dim)
        turned = _rotated(rows[:, : dims.heads + dims.kv_heads], *rotation)
        query, keys = turned.split([dims.heads, dims.kv_heads], dim=1)
        _write(cache, number, batch.slots, keys, rows[:, dims.heads + dims.kv_heads :])
        parts = [self.attention(query[one.rows], cache, number, one) for one in batch.segments]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(len(hidden), -1)

    def _normed(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(hidden, (hidden.shape[-1],), weight, EPSILON)


def _write(cache: KVCache, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
    own_keys, own_values = cache.layers[layer]
    own_keys.index_copy_(0, slots, keys)
    own_values.index_copy_(0, slots, values)


def _rotary(width: int, tokens: int, dtype: torch.dtype, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    frequencies = ROPE_BASE ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(tokens, dtype=torch.float64)[:, None] * frequencies
    return angles.cos().to(dtype).to(device), angles.sin().to(dtype).to(device)


def _rotated(rows: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Rotate the two halves of each head. rows: [rows, heads, width]; cosine, sine: [rows, 1, width / 2]."""
    low, high = rows.chunk(2, dim=-1)
    return torch.cat([low * cosine - high * sine, high * cosine + low * sine], dim=-1)
