"""Limits that only the SGLang style has, in its own words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SglangLimits:
    """What its prefill batches take, and how careful it is when it admits a request.

    chunked_prefill_size: most prompt tokens of one prefill batch; None: prompts are never cut. max_prefill_tokens: the
    same where prompts are not cut, only a batch's first request may exceed it. schedule_conservativeness: scales the
    share of the running requests' remaining output that admission expects them to use.
    """

    chunked_prefill_size: int | None = 8192
    max_prefill_tokens: int = 16384
    schedule_conservativeness: float = 1.0


def reserved_slots(drafts: int) -> int:
    """KV slots that a decoding request holds beyond its computed tokens, for a chain (topk 1).

    A round may write max(num_steps, num_draft_tokens) = drafts + 1 slots, and as many again are kept because the next
    round is prepared before this one's accepted length is known. Without speculation it is the one token.
    """
    return 2 * (drafts + 1) if drafts else 1
