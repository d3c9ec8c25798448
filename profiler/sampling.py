"""Which drafts a target accepts, without asking the device for anything: greedy, and by rejection sampling.

Rejection keeps the target's distribution: a draft x with probabilities p (target) and q (draft) is accepted with
min(1, p(x) / q(x)), and a rejected one is replaced by a draw from max(0, p - q), scaled (arXiv:2211.17192).
"""

from __future__ import annotations

import torch


def greedy(logits: torch.Tensor, drafts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Accepted drafts and the token after them, [batch] each. logits: [batch, k + 1, vocabulary]."""
    best = logits.argmax(-1)
    accepted = (best[:, :-1] == drafts).long().cumprod(1).sum(1)
    return accepted, best.gather(1, accepted[:, None])[:, 0]


def rejection(
    logits: torch.Tensor,
    drafts: torch.Tensor,
    uniforms: torch.Tensor,
    exponentials: torch.Tensor,
    draft_probabilities: torch.Tensor | None = None,
    temperature: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `greedy`, by rejection sampling at a temperature.

    uniforms: [batch, k]; exponentials: [batch, vocabulary], of rate 1: the index with the largest weight divided by its
    exponential is a draw with these weights. draft_probabilities: [batch, k, vocabulary]; None where drafts were the
    draft's most likely tokens, which is q = 1 at them.
    """
    k = drafts.shape[1]
    target = (logits.float() / temperature).softmax(-1)
    p = target[:, :k].gather(2, drafts[:, :, None])[:, :, 0]
    q = torch.ones_like(p)
    if draft_probabilities is not None:
        q = draft_probabilities.gather(2, drafts[:, :, None])[:, :, 0]
    accepted = (uniforms * q < p).long().cumprod(1).sum(1)
    rows = torch.arange(len(drafts), device=drafts.device)
    weights = target[rows, accepted]
    if k:
        place = accepted.clamp(max=k - 1)
        if draft_probabilities is not None:
            proposed = draft_probabilities[rows, place]
        else:
            proposed = torch.zeros_like(weights).scatter_(1, drafts[rows, place, None], 1.0)
        rejected = (accepted < k)[:, None]
        weights = torch.where(rejected, (weights - proposed).clamp(min=0.0), weights)
    return accepted, (weights / exponentials).argmax(-1)
