"""How far the analytic model lands from a published fit that it was not fitted to."""

from __future__ import annotations

from typing import NamedTuple

from .roofline import ModelRoofline

# Llama-3.1-8B on one H100: Liu, Yu, Park, Stoica, Cheung, arXiv:2601.11580, and its simulator.
PUBLISHED_FIXED_MS = 5.88590713
PUBLISHED_PER_TOKEN_US = 21.0103129
PUBLISHED_PER_KV_TOKEN_NS = 39.2645679
PUBLISHED_EAGLE_PASS_MS = 2.13526175 / 3  # our reading: k = 3 passes in series


class TermRatio(NamedTuple):
    """One term of the fit, the same of the analytic model, and their quotient."""

    term: str
    unit: str
    published: float
    analytic: float

    @property
    def ratio(self) -> float:
        """Analytic over published."""
        return self.analytic / self.published


def published_fit_ratios(target: ModelRoofline, eagle: ModelRoofline) -> list[TermRatio]:
    """The terms of the fit beside those of the analytic H100 with Llama-3.1-8B and its EAGLE-type head.

    The fit's per-token term has every row's logits in it; the dense slope alone has none.
    """
    fixed = target.dense_ms(0) + target.head_ms(0)
    dense = _slope(target.dense_ms(8192), target.dense_ms(16_384), 8192) * 1e3
    head = _slope(target.head_ms(8192), target.head_ms(16_384), 8192) * 1e3
    average = _slope(_pass_ms(target, 1), _pass_ms(target, 512), 511) * 1e3
    attention = _slope(target.decode_attention_ms(1, 1, 1024), target.decode_attention_ms(1, 1, 9216), 8192) * 1e6
    return [
        TermRatio("fixed: dense and head at no rows", "ms", PUBLISHED_FIXED_MS, fixed),
        TermRatio("per token: dense, compute-bound", "us", PUBLISHED_PER_TOKEN_US, dense),
        TermRatio("per token: dense and head, compute-bound", "us", PUBLISHED_PER_TOKEN_US, dense + head),
        TermRatio("per token: dense and head, mean of 1 to 512", "us", PUBLISHED_PER_TOKEN_US, average),
        TermRatio("per KV token: decode attention", "ns", PUBLISHED_PER_KV_TOKEN_NS, attention),
        TermRatio("one EAGLE pass, batch 1", "ms", PUBLISHED_EAGLE_PASS_MS, eagle.narrow_pass_ms(1, 1)),
    ]


def ratio_table(ratios: list[TermRatio]) -> str:
    """The ratios as a Markdown table."""
    lines = ["| term | published | analytic | ratio |", "|---|---|---|---|"]
    lines += [
        f"| {one.term} | {one.published:.4g} {one.unit} | {one.analytic:.4g} {one.unit} | {one.ratio:.2f} |"
        for one in ratios
    ]
    return "\n".join(lines)


def _pass_ms(target: ModelRoofline, rows: float) -> float:
    return target.dense_ms(rows) + target.head_ms(rows)


def _slope(first: float, last: float, steps: float) -> float:
    return (last - first) / steps
