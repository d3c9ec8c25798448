"""Why speculation pays or not, from committed tokens per round and the time shares."""

from __future__ import annotations

from typing import Any

from .number_text import count_text, number_text, percent_text

# What a cause must at least show before it is named.
COMPUTE_BOUND = 1.5  # positions at this many times the cost of one no longer hide behind the reading of the weights
SAME_BATCH = 1.25  # beyond this growth of the batch, the cost of verification is the batch's doing
FEWER_RUNNING = 0.95  # mean running requests with the draft loaded / without
MORE_WAITING = 0.05  # of a request's time

TTFT_PARTS = {
    "queue": "waiting for a batch slot",
    "prefill": "its own prefill",
    "drafter": "drafting",
    "interference": "steps of other requests",
}


def round_reason(baseline: dict[str, Any], arm: dict[str, Any]) -> str | None:
    """`a round commits 2.90 tokens for 1.79x the time of a plain step`; None where there are no rounds or no TPOT.

    A round takes TPOT x committed tokens, so that the speedup is the quotient of the two numbers.
    """
    committed, tpot, plain = arm["committed_tokens_per_round"], arm["mean_tpot_ms"], baseline["mean_tpot_ms"]
    if not committed or not tpot or not plain:
        return None
    plain_round_ms = plain * (baseline["committed_tokens_per_round"] or 1.0)
    if not plain_round_ms:  # two numbers so small that their product is none
        return None
    times = tpot * committed / plain_round_ms
    return f"a round commits {number_text(committed)} tokens for {number_text(times)}x the time of a plain step"


def main_burden(baseline: dict[str, Any], arm: dict[str, Any]) -> str:
    """The phase that lengthens a round most: drafting, verification, prefill_interference or "rest", the small ones."""
    before, after = _round_ms(baseline), _round_ms(arm)
    small = ("sampling", "kv_update", "host")
    added = {phase: after[phase] - before[phase] for phase in ("drafting", "verification", "prefill_interference")}
    added["rest"] = sum(after[phase] - before[phase] for phase in small)
    return max(added, key=lambda phase: added[phase])


def burden_reason(burden: str, baseline: dict[str, Any], arm: dict[str, Any]) -> str:
    """The burden in words, with its number."""
    share = arm["time_share"]
    if burden == "drafting":
        return f"drafting takes {percent_text(share['drafting'])} of the time"
    if burden == "prefill_interference":
        return f"the prefill of others takes {percent_text(share[burden])} of the decoding requests' time"
    if burden == "rest":
        rest = share["sampling"] + share["kv_update"] + share["host"]
        return f"sampling, KV update and host take {percent_text(rest)} of the time"
    return _verification_reason(baseline, arm)


def memory_reason(baseline: dict[str, Any], arm: dict[str, Any]) -> str | None:
    """Draft memory leaves fewer KV blocks, so fewer requests run and the rest wait; None where that did not happen."""
    blocks, blocks_without = arm["num_gpu_blocks"], baseline["num_gpu_blocks"]
    running, running_without = arm["mean_running"], baseline["mean_running"]
    waiting, waiting_without = _waiting(arm), _waiting(baseline)
    if blocks is None or blocks_without is None or running is None or running_without is None:
        return None
    fewer = blocks < blocks_without and running < FEWER_RUNNING * running_without
    if not fewer or waiting < waiting_without + MORE_WAITING:
        return None
    return (
        f"draft memory leaves fewer KV blocks ({count_text(blocks_without)} -> {count_text(blocks)}), so "
        f"{number_text(running)} requests run instead of {number_text(running_without)} and the rest queue "
        f"(waiting takes {percent_text(waiting)} of the time, {percent_text(waiting_without)} without)"
    )


def ttft_reason(baseline: dict[str, Any], arm: dict[str, Any]) -> str | None:
    """The part of TTFT that grew most; None where TTFT is unknown or no part grew."""
    grown: dict[str, float] = {}
    for part in TTFT_PARTS:
        before, after = baseline.get(f"mean_ttft_{part}_ms"), arm.get(f"mean_ttft_{part}_ms")
        if before is not None and after is not None:
            grown[part] = after - before
    if not grown or max(grown.values()) <= 0:
        return None
    part = max(grown, key=lambda name: grown[name])
    return f"most of the added TTFT is {TTFT_PARTS[part]} (+{number_text(grown[part])} ms)"


def _verification_reason(baseline: dict[str, Any], arm: dict[str, Any]) -> str:
    plain = _round_ms(baseline)["verification"]
    if plain <= 0:
        return f"verification takes {percent_text(arm['time_share']['verification'])} of the time"
    times = _round_ms(arm)["verification"] / plain
    drafts, tokens = arm["spec_decode_num_drafts"], arm["spec_decode_draft_tokens"]
    positions = f"{1 + tokens / drafts:.3g} positions" if drafts else "the drafts"
    cost = f"verifying {positions} takes {number_text(times)}x the target time of one"
    running, plain_running = arm["mean_running"] or 0.0, baseline["mean_running"] or 0.0
    if running > SAME_BATCH * plain_running:
        return f"{cost}, at {number_text(running)} running requests instead of {number_text(plain_running)}"
    return f"verification is compute-bound: {cost}" if times >= COMPUTE_BOUND else cost


def _round_ms(arm: dict[str, Any]) -> dict[str, float]:
    """Time of a mean request in each phase, per round up to a factor that both arms share (their output lengths)."""
    scale = (arm["mean_e2el_ms"] or 0.0) * (arm["committed_tokens_per_round"] or 1.0)
    return {phase: (share or 0.0) * scale for phase, share in arm["time_share"].items()}


def _waiting(arm: dict[str, Any]) -> float:
    return float(arm["time_share"]["waiting"] or 0.0)
