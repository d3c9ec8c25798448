"""Which points a preset measures: both sides of tile edges for the dense part, a coarse grid for attention."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .setup import CAPTURE_SIZES
from .timing import Settings

SHORT_CONTEXT = 16  # at which the dense part and first draft passes are measured
TILE_EDGES = (64, 128, 192, 256, 384, 512)


@dataclass(frozen=True, slots=True)
class Preset:
    """Axes of the tables, and what is held out.

    rows: of the target pass; eager_rows: of those, once more without a graph where there are graphs. rounds: (batch,
    query, context) of whole steps. refine: further rows where the dense part changes most. chains: (batch, drafts).
    live: (batch, query, context, acceptance) of speculative loops. repeated: share of the points measured twice.
    """

    batch: tuple[int, ...]
    query: tuple[int, ...]
    context: tuple[int, ...]
    rows: tuple[int, ...]
    eager_rows: tuple[int, ...]
    head_rows: tuple[int, ...]
    kv_rows: tuple[int, ...]
    sampling_batch: tuple[int, ...]
    sampling_query: tuple[int, ...]
    chunk: tuple[int, ...]
    start: tuple[int, ...]
    first_rows: tuple[int, ...]
    narrow_batch: tuple[int, ...]
    narrow_context: tuple[int, ...]
    host_batch: tuple[int, ...]
    rounds: tuple[tuple[int, int, int], ...]
    mixed: tuple[str, ...]
    skew: tuple[str, ...]
    chains: tuple[tuple[int, int], ...]
    live: tuple[tuple[int, int, int, float], ...]
    live_steps: int
    refine: int
    repeated: float
    settings: Settings

    def most_tokens(self) -> int:
        """KV tokens of one request that any point touches."""
        live = max((context + query * self.live_steps for _, query, context, _ in self.live), default=0)
        chunk = self.chunk[-1] + self.start[-1]
        return max(self.context[-1] + self.query[-1], self.rows[-1], chunk, live) + 64


def _rounds(
    batch: tuple[int, ...], query: tuple[int, ...], context: tuple[int, ...]
) -> tuple[tuple[int, int, int], ...]:
    return tuple((b, q, c) for c in context for b in batch for q in query)


SMOKE = Preset(
    batch=(1, 4),
    query=(1, 4),
    context=(SHORT_CONTEXT, 256),
    rows=(1, 4, 16, 64),
    eager_rows=(1, 64),
    head_rows=(1, 4, 16),
    kv_rows=(1, 64),
    sampling_batch=(1, 4),
    sampling_query=(1, 4),
    chunk=(64, 128),
    start=(0,),
    first_rows=(4, 16, 64),
    narrow_batch=(1, 4),
    narrow_context=(SHORT_CONTEXT, 256),
    host_batch=(4,),
    rounds=((1, 4, 128), (4, 1, 128), (4, 4, 256)),
    mixed=(),
    skew=(),
    chains=(),
    live=((4, 4, 64, 0.7),),
    live_steps=30,
    refine=0,
    repeated=0.1,
    settings=Settings(min_ms=25.0, min_n=8, rel_ci=0.02, max_s=0.4, warm_ms=10.0),
)

QUICK = Preset(
    batch=(1, 2, 4, 8, 16),
    query=(1, 2, 4, 6, 8),
    context=(SHORT_CONTEXT, 128, 512, 1024),
    rows=(1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 129, 192, 256),
    eager_rows=(1, 16, 64, 128, 256),
    head_rows=(1, 2, 4, 8, 16, 32, 64, 128),
    kv_rows=(1, 16, 128, 256),
    sampling_batch=(1, 4, 16),
    sampling_query=(1, 2, 4, 8),
    chunk=(16, 64, 128, 256),
    start=(0, 512),
    first_rows=(1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256),
    narrow_batch=(1, 2, 4, 8, 16),
    narrow_context=(SHORT_CONTEXT, 512, 1024),
    host_batch=(1, 4, 16),
    rounds=_rounds((1, 4, 12), (1, 2, 3, 4, 5, 6, 8), (256,)) + _rounds((2, 8), (1, 4), (768,)),
    mixed=("q64_4q4s256", "q128_8q2s256", "q96_q32s128_3q5s512", "q200_q1s700"),
    skew=("4q4s64_4q4s960", "2q2s32_6q2s672", "7q1s128_q1s1k", "2q6s100_2q6s900"),
    chains=((1, 3), (4, 3), (8, 5), (16, 2)),
    live=((1, 4, 128, 0.7), (4, 4, 256, 0.7), (8, 3, 200, 0.5), (4, 6, 128, 0.85), (8, 1, 256, 0.0)),
    live_steps=60,
    refine=6,
    repeated=0.1,
    settings=Settings(min_ms=100.0, min_n=7, rel_ci=0.01, max_s=1.5, warm_ms=20.0, warm_n=1),
)

FULL = Preset(
    batch=(1, 2, 4, 8, 16, 32, 64, 128),
    query=(1, 2, 3, 4, 5, 6, 8, 12),
    context=(SHORT_CONTEXT, 256, 1024, 4096, 16384),
    rows=tuple(
        sorted(
            {*CAPTURE_SIZES, 3, 5, 6, *(edge + 1 for edge in TILE_EDGES), 640, 768, 1024, 1025, 1536, 2048, 4096, 8192}
        )
    ),
    eager_rows=(1, 4, 16, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192),
    head_rows=(1, 2, 4, 8, 16, 32, 64, 65, 96, 128, 129, 192, 256, 257, 384, 512, 1024),
    kv_rows=(1, 4, 16, 64, 128, 256, 512, 1024, 2048, 8192),
    sampling_batch=(1, 4, 16, 64, 128),
    sampling_query=(1, 2, 4, 6, 8, 12),
    chunk=(1, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    start=(0, 1024, 4096, 16384),
    first_rows=tuple(sorted({1, 2, 4, 8, *range(16, 257, 16), 65, 129, 257, 384, 512, 768, 1024, 2048, 4096, 8192})),
    narrow_batch=(1, 2, 4, 8, 16, 32, 64, 128),
    narrow_context=(SHORT_CONTEXT, 1024, 4096, 16384),
    host_batch=(1, 8, 32, 128),
    rounds=_rounds((1, 8, 32, 64), (1, 2, 3, 4, 6, 8), (1024,)) + _rounds((16, 128), (1, 4), (512, 3000)),
    mixed=(
        "q512_16q4s1k",
        "q1k_32q1s1k",
        "q2k_8q4s2k",
        "q256s1k_64q4s512",
        "q2k_64q1s1k",
        "q512s512_32q6s700",
        "q128_128q4s300",
        "q1k_q1ks1k_16q2s1k",
        "q4k_4q8s1k",
        "q640_24q3s900",
    ),
    skew=(
        "4q4s128_4q4s1920",
        "16q4s256_16q4s1792",
        "24q1s512_8q1s2560",
        "48q4s512_16q4s2560",
        "7q1s256_q1s6k",
        "12q2s100_4q2s4k",
        "60q4s1k_4q4s8k",
        "30q6s1000_2q6s1k",
        "64q1s64_64q1s2k",
        "8q8s1k_8q8s3k",
        "3q4s128_q4s16k",
        "100q2s500_28q2s3k",
    ),
    chains=((1, 3), (8, 3), (8, 7), (32, 4), (64, 2), (128, 3)),
    live=(
        (1, 4, 1024, 0.7),
        (8, 4, 1024, 0.7),
        (32, 4, 1024, 0.7),
        (64, 2, 512, 0.6),
        (16, 6, 2048, 0.85),
        (128, 4, 512, 0.7),
        (32, 1, 1024, 0.0),
    ),
    live_steps=200,
    refine=16,
    repeated=0.1,
    settings=Settings(min_ms=50.0, min_n=10, rel_ci=0.005, max_s=1.0),
)

PRESETS = {"smoke": SMOKE, "quick": QUICK, "full": FULL}


def at_most(preset: Preset, tokens: int) -> Preset:
    """A preset whose contexts, chunks and starts end at what a request may hold."""

    def keep(axis: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(point for point in axis if point <= tokens) or axis[:1]

    return replace(
        preset,
        context=keep(preset.context),
        narrow_context=keep(preset.narrow_context),
        start=keep(preset.start),
        chunk=keep(preset.chunk),
    )
