"""The cost of one engine step, from what was scheduled to milliseconds per phase.

A draft round is one first pass over all rows of the step, which also is the drafter's own prefill, and narrow passes
over the requests that draft on: vLLM's shape of chain drafting.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class GraphMode(IntEnum):
    """How a target pass is launched. NONE: the calibration knows no graphs."""

    NONE = 0
    FULL = 1
    PIECEWISE = 2
    EAGER = 3


class StepShape(NamedTuple):
    """Decodes and prompt chunks of one step.

    decodes: requests that run a round; draft_tokens: drafts they verify; context_tokens: sum of their computed tokens.
    chunks: (tokens, start) of each prefill row; finished_prompts: those that complete, with the sum of their contexts.
    """

    decodes: int
    draft_tokens: int
    context_tokens: int
    chunks: list[tuple[int, int]]
    finished_prompts: int
    finished_prompt_context: int


_NO_CHUNKS: list[tuple[int, int]] = []


def round_shape(decodes: int, drafts: int, context_tokens: int) -> StepShape:
    """A step in which every one of `decodes` requests verifies `drafts` drafts, and nothing else happens."""
    return StepShape(decodes, decodes * drafts, context_tokens, _NO_CHUNKS, 0, 0)


class StepTerms(NamedTuple):
    """Milliseconds of one step by phase; the phases run one after another.

    host: all of the host's work (the engine decides how much of it the device hides). target: dense layers, head and
    attention. target_decode: the target's cost without the step's prefill rows. extrapolated: beyond the fitted range.
    graph: how the target pass was launched, where the calibration knows graphs.
    """

    host: float
    target: float
    target_decode: float
    kv_update: float
    sampling: float
    draft: float
    extrapolated: bool
    graph: GraphMode

    def host_and_step_ms(self, asynchronous: bool) -> tuple[float, float]:
        """What the host adds to a step, and the step's length: scheduled asynchronously, the device hides the host."""
        device_ms = self.target + self.kv_update + self.sampling + self.draft
        if not asynchronous:
            return self.host, self.host + device_ms
        return max(0.0, self.host - device_ms), max(self.host, device_ms)


class StepCosts(Protocol):
    """A compiled calibration: what the engine asks for every step."""

    def terms(self, shape: StepShape, draft_passes: int) -> StepTerms:
        """Cost of a step; draft_passes: serial passes of the drafter, 0 without one."""

    def rounds(self, decodes: int, drafts: int, context_tokens: Floats, draft_passes: int) -> RoundTable:
        """Cost of several steps that are rounds of the same requests; the same numbers as `terms` gives one by one."""

    def chunk_ms(self, rows: int, context_tokens: int, finishes: bool) -> float:
        """A target pass over nothing but one prompt chunk; `finishes`: its last row has logits."""


class RoundTable(NamedTuple):
    """Costs of several rounds: [phase, step] as the first six of `StepTerms`, and what else the terms would tell."""

    phases: Floats
    extrapolated: NDArray[np.bool_] | bool
    graph: GraphMode
