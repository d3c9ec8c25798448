"""The words of the page, each with its meaning: beside the word where it stands, and at the end."""

from __future__ import annotations

from collections.abc import Iterable

from .markup import Html, joined, tag

DEFINITIONS = {
    "step": ("step", "One iteration of the engine: one pass of the target model over the whole batch."),
    "round": (
        "round",
        "What a step is to a request that decodes: its drafts are verified, tokens are committed, new ones drafted.",
    ),
    "draft": ("draft length, k", "Draft tokens proposed in a round. The target then verifies k + 1 positions at once."),
    "committed": (
        "committed tokens per round",
        "Tokens that a round delivers: the accepted drafts and one more of the target, up to the end of the output.",
    ),
    "acceptance_length": (
        "acceptance length",
        "1 + accepted drafts / rounds with drafts, as vLLM counts it: tokens past the end of the output are in it.",
    ),
    "per_position": (
        "acceptance by position",
        "Unconditional: how often position i is accepted in all rounds, which vLLM prints. Conditional: how often it "
        "is accepted where all positions before it were.",
    ),
    "ttft": ("TTFT", "Time to first token: from a request's arrival to its first token."),
    "tpot": ("TPOT", "Time per output token: (last token - first token) / (output tokens - 1), of each request."),
    "itl": (
        "ITL",
        "Gap between two deliveries of a request. With speculation a delivery holds several tokens, so the gap is "
        "longer than the time per token.",
    ),
    "e2e": ("E2E latency", "From a request's arrival to its last token."),
    "decode": ("decode latency", "From the first to the last token of a completed request."),
    "queue": ("queue time", "From a request's arrival to the first step that schedules it."),
    "p95": (
        "p95, p99",
        "95 (99) of 100 requests are at or below it. Taken in each replication, then averaged over them.",
    ),
    "throughput": ("throughput", "Completed work per second: output tokens, or requests."),
    "goodput": ("goodput", "Requests per second that meet every limit of the service level objective (SLO)."),
    "slo": ("SLO", "Service level objective: the latencies that requests must keep, in the mean or at a percentile."),
    "interval": (
        "95 % interval",
        "Range that covers the mean over replications with 95 % confidence. Both arms see the same requests, so that "
        "differences are paired. Where a ratio's interval holds 1, no difference is shown.",
    ),
    "arm": ("arm", "One configuration of the comparison. The baseline runs without speculation."),
    "slice": ("slice", "A class of requests with lengths, acceptance and success rate of its own."),
    "phase": (
        "time by phase",
        "Where a request's time goes between arrival and last token. A decoding request's share of a step that also "
        "reads others' prompts is split: what the step would cost without them is verification, the rest is prefill "
        "of others.",
    ),
    "marginal": (
        "value of a draft token",
        "P(committed): how often the token at this position becomes output. Adds: how much longer the round is with "
        "it. Saves: P(committed) times the time per token without it. It pays where it saves more than it adds.",
    ),
    "break_even": (
        "break-even",
        "Where speculation neither gains nor loses: ratio 1. Above it (throughput) or below it (latency) it gains.",
    ),
    "kv": ("KV utilisation", "Share of the blocks for keys and values of past tokens that requests hold."),
    "preemption": ("preemption", "A running request loses its KV blocks and has to be computed again later."),
    "waste": ("drafts wasted", "Draft tokens that were verified and rejected."),
    "cost": (
        "cost",
        "GPU time at the price given, idle time included, at this load. Below capacity two arms on the same GPUs cost "
        "the same per hour; the cost at the SLO is what `specsim capacity` answers.",
    ),
    "task": (
        "cost per successful task",
        "Cost / completed requests that do their task (success rate) and do not miss the deadline, if there is one.",
    ),
    "overload": ("overload", "More requests arrive than are served: the queue grows without end, whatever one waits."),
    "extrapolated": (
        "extrapolated",
        "Share of the simulated time in steps beyond what the calibration measured. Their cost is physics, not data.",
    ),
    "concurrency": ("concurrency", "Requests in the system at once: in a closed loop, the number of users."),
    "goodput_policy": (
        "goodput policy",
        "The engine chooses the draft length of each step that promises most committed tokens per millisecond.",
    ),
    "schedule": ("schedule", "The engine takes the draft length from a table by the number of scheduled requests."),
}


def term(key: str, text: str | None = None) -> Html:
    """A word that opens its meaning, by pointer and by key."""
    return tag("button", text or DEFINITIONS[key][0], type="button", class_="term", popovertarget=f"define-{key}")


def popovers() -> Html:
    """The meanings that the words open."""
    return joined(
        tag("div", tag("strong", name), tag("p", meaning), id=f"define-{key}", popover=True)
        for key, (name, meaning) in DEFINITIONS.items()
    )


def glossary(keys: Iterable[str] = DEFINITIONS) -> Html:
    """All words with their meanings, for the end of the page and for paper."""
    entries = (
        joined((tag("dt", DEFINITIONS[key][0]), tag("dd", DEFINITIONS[key][1])))
        for key in sorted(keys, key=lambda key: DEFINITIONS[key][0].lower())
    )
    return tag("dl", *entries)
