"""Pairs of tiny random models whose draft is a disturbed copy of the target, so that some drafts are accepted."""

import torch

from profiler.attention import SdpaAttention
from profiler.dims import Dims, eagle_head
from profiler.drafter import Drafter
from profiler.kv_cache import make_cache
from profiler.model import Decoder
from profiler.passes import EagerPasses
from profiler.speculator import Speculator

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}
TOKENS = 96


def random_dims(seed):
    """Widths, heads, experts and tying that differ from pair to pair."""
    kv_heads, group, width = (1, 2, 2)[seed % 3], (2, 1, 3)[seed % 3], (8, 16)[seed % 2]
    hidden = (32, 48)[seed % 2]
    experts = 4 if seed % 4 == 3 else 0
    return Dims(
        f"pair-{seed}",
        hidden,
        64,
        2,
        kv_heads * group,
        kv_heads,
        width,
        61,
        seed % 2 == 0,
        experts,
        2 if experts else 0,
        40,
    )


def decoder(dims, dtype, seed, shared=None):
    """Weights ten times as large as a profile's: logits of untrained models are nearly flat otherwise."""
    model = Decoder(dims, dtype, "cpu", SdpaAttention(), seed=seed, most_tokens=TOKENS + 32, shared=shared)
    if shared is None:
        for tensor in weights(model):
            tensor.mul_(10)
    return model


def weights(model):
    """Every matrix of a model, each once."""
    found = [model.embedding] + ([] if model.dims.tied else [model.head.weight])
    for layer in model.layers:
        products = [layer.qkv, layer.out]
        forward = layer.feed_forward
        parts = forward.experts if hasattr(forward, "experts") else [forward]
        products += [product for part in parts for product in (part.gate_up, part.down)]
        products += [forward.router] if hasattr(forward, "router") else []
        found += [product.weight for product in products]
    return found


def disturbed_copy(model, dims, dtype, seed, size=0.1):
    """A draft that often agrees with the target."""
    copy = decoder(dims, dtype, seed)
    generator = torch.Generator().manual_seed(seed)
    for own, other in zip(weights(copy), weights(model), strict=True):
        noise = torch.randn(own.shape, generator=generator, dtype=torch.float64).to(own.dtype)
        own.copy_(other + size * other.std() * noise)
    return copy


def cache_of(dims, dtype, batch, paged=False, tokens=TOKENS):
    return make_cache(
        dims.layers,
        dims.kv_heads,
        dims.head_dim,
        batch,
        tokens,
        dtype=DTYPES[dtype],
        device="cpu",
        paged=paged,
        seed=3,
    )


def prompts_of(batch, length, vocabulary, seed):
    return torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))


def decoded(target, draft, dtype, batch, k, prompts, wanted, paged=False, passes=None):
    """Greedy tokens of each request, speculatively for k > 0, and the accepted counts of all rounds."""
    passes = passes or EagerPasses()
    drafter = Drafter(draft, cache_of(draft.dims, dtype, batch, paged), batch, k, passes) if k else None
    speculator = Speculator(target, cache_of(target.dims, dtype, batch, paged), batch, drafter, passes=passes)
    out = [[int(token)] for token in speculator.prefill(prompts)]
    counts = []
    while min(map(len, out)) < wanted:
        committed = speculator.step()
        counts += committed.accepted
        for tokens, row, accepted in zip(out, committed.tokens.tolist(), committed.accepted, strict=True):
            tokens += row[: accepted + 1]
    return [tokens[:wanted] for tokens in out], counts


def eagle_for(target, dtype, seed):
    return decoder(eagle_head(target.dims), dtype, seed, shared=target)
