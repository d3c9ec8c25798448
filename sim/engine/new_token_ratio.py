"""SGLang's guess of how much of their remaining output the running requests will still need in KV slots."""

from __future__ import annotations

from collections.abc import Iterable

from .rows import Row

INITIAL_RATIO = 0.7
LEAST_OF_INITIAL = 0.14
DECAY_STEPS = 600
RETRACT_DECODE_STEPS = 20


class NewTokenRatio:
    """Starts at the initial ratio and falls by the same amount in every decode step, down to a least one.

    Steps are counted, not summed up, so that many steps at once give the same ratio as one by one.
    """

    def __init__(self, conservativeness: float) -> None:
        self._initial = min(INITIAL_RATIO * conservativeness, 1.0)
        self._least = min(self._initial * LEAST_OF_INITIAL, 1.0)
        self._decay = (self._initial - self._least) / DECAY_STEPS
        self._from, self._since = self._initial, 0

    def at(self, decode_steps: int) -> float:
        """The ratio after so many decode steps in all."""
        return max(self._from - self._decay * (decode_steps - self._since), self._least)

    def reset(self, decode_steps: int) -> None:
        """An engine that has nothing to do starts again from the initial ratio."""
        self._from, self._since = self._initial, decode_steps

    def after_retraction(self, remaining: Iterable[Row], decode_steps: int) -> None:
        """What the requests that stay have decoded, and some more steps of each, of all that they asked for."""
        decoded = asked = 0
        for row in remaining:
            decoded += row.known_tokens - row.prompt_tokens + RETRACT_DECODE_STEPS
            asked += row.end_tokens - row.prompt_tokens
        self._from, self._since = min(1.0, decoded / (asked + 1)), decode_steps
