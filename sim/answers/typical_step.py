"""The step that a scenario is about, without running it: its decode batch, contexts and committed tokens per round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..acceptance.build import build_runs
from ..acceptance.runs import AcceptanceRuns
from ..inputs.load import LoadedScenario
from ..inputs.scenario import Gamma, Poisson, Scenario, TraceArrivals
from ..workload.build import build_requests
from ..workload.requests import Requests
from .marginal import mean_round_ms
from .plan import ArmPlan

MOST_REQUESTS = 2000  # of the first replication: means of lengths and rounds within about 1 %
MOST_OUTPUT_TOKENS = 2000  # of one request, where its rounds are followed
MOST_BATCH = 4096  # a decode batch beyond is not looked for


class TypicalRound(NamedTuple):
    """Tokens that a round commits in the mean (None where outputs have no rounds), and drafts that it verifies."""

    committed: float | None
    verified: float


class Guess(NamedTuple):
    """A number and where it comes from."""

    value: int
    source: str


def sampled_requests(loaded: LoadedScenario, arm: ArmPlan) -> Requests:
    """The first requests of an arm's first replication. Raises InputError as the run would."""
    workload = loaded.scenario.workload
    slices = [
        part if part.output_tokens is not None else part.model_copy(update={"acceptance": own.acceptance})
        for part, own in zip(arm.slices, workload.slices, strict=True)  # a log that is replayed may bring the lengths
    ]
    sample = workload.model_copy(update={"slices": slices})
    if not isinstance(workload.arrivals, TraceArrivals):
        count = min(workload.requests or MOST_REQUESTS, MOST_REQUESTS)
        sample = sample.model_copy(update={"requests": count, "duration_s": None})
    requests = build_requests(sample, loaded.base_dir.resolve(), loaded.scenario.run.seed, 0, loaded.problem)
    return requests.first(MOST_REQUESTS) if len(requests) > MOST_REQUESTS else requests


def mean_context(requests: Requests) -> Guess:
    """Mean computed tokens of a decoding request: prompt and half the output, long outputs decode for longer."""
    prompts, outputs = requests.prompt_tokens, requests.output_tokens
    mean = float(np.sum(outputs * (prompts + outputs / 2)) / np.sum(outputs))
    return Guess(round(mean), "prompt and half the output, mean over the output tokens")


def typical_round(arm: ArmPlan, requests: Requests, seed: int, base_dir: Path) -> TypicalRound:
    """Means over the rounds of the requests, the cut at the end of outputs included."""
    if not arm.drafts:
        return TypicalRound(1.0, 0.0)
    cut = replace(requests, output_tokens=np.minimum(requests.output_tokens, MOST_OUTPUT_TOKENS))
    runs = build_runs(cut, [part.acceptance for part in arm.slices], arm.drafts + 1, seed, 0, base_dir)
    return _followed(runs, cut.output_tokens, arm.drafts)


def _followed(runs: AcceptanceRuns, outputs: np.ndarray, drafts: int) -> TypicalRound:
    """All requests round by round, from output position 1 on."""
    rounds, verified, position = 0, 0, np.ones(len(outputs), dtype=np.int64)
    running = np.flatnonzero(position < outputs)
    tokens = int(np.sum(outputs - 1))
    while len(running):
        rounds += len(running)
        at = runs.offsets[running] + position[running]
        drafted = np.full(len(at), drafts) if runs.drafted is None else np.minimum(runs.drafted[at], drafts)
        verified += int(drafted.sum())
        position[running] += np.minimum(runs.accepted[at], drafted).astype(np.int64) + 1
        running = running[position[running] < outputs[running]]
    return TypicalRound(tokens / rounds, verified / rounds) if rounds else TypicalRound(None, float(drafts))


def typical_batch(arm: ArmPlan, scenario: Scenario, requests: Requests, context: int, typical: TypicalRound) -> Guess:
    """The decode batch of one replica: the users there are, or as many requests as the arrivals keep in service."""
    most, limit = _most_resident(arm, context)
    if requests.concurrency is not None:
        users = max(1, requests.concurrency // arm.settings.replicas)
        return Guess(users, "concurrency of the arrivals") if users <= most else Guess(most, limit)
    rate = _request_rate(scenario, requests)
    if rate is None:
        together = max(1, (scenario.workload.requests or len(requests)) // arm.settings.replicas)
        return Guess(together, "all requests at once") if together <= most else Guess(most, limit)
    rounds_per_s = (
        rate / arm.settings.replicas * float(np.mean(requests.output_tokens - 1)) / (typical.committed or 1.0)
    )
    for batch in range(1, min(most, MOST_BATCH) + 1):
        if batch * 1000 >= rounds_per_s * mean_round_ms(arm, batch, arm.drafts, context, typical.verified):
            return Guess(batch, f"as many as keep up with {rate:.3g} requests/s, prefill not counted")
    return Guess(min(most, MOST_BATCH), f"{limit}: the arrivals keep more in service")


def _most_resident(arm: ArmPlan, context: int) -> tuple[int, str]:
    settings = arm.settings
    if settings.num_gpu_blocks is None:
        return settings.max_num_seqs, "max_num_seqs"
    blocks_each = -(-(context + 1 + settings.lookahead) // settings.block_size)
    fit = max(1, (settings.num_gpu_blocks - 1) // blocks_each)
    return min((settings.max_num_seqs, "max_num_seqs"), (fit, "KV blocks"))


def _request_rate(scenario: Scenario, requests: Requests) -> float | None:
    """Requests per second of open traffic, None where all arrive at once."""
    arrivals = scenario.workload.arrivals
    if isinstance(arrivals, Poisson | Gamma):
        return arrivals.rate
    span_ms = float(requests.arrival_ms[-1] - requests.arrival_ms[0])
    return 1000 * (len(requests) - 1) / span_ms if span_ms > 0 else None
