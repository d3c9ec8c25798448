"""How many drafts a step proposes: fixed, by a schedule, by estimated goodput, or by foresight as a bound.

A policy sees what an engine sees: the step that was scheduled, and counts of past rounds. Only `ClairvoyantDrafts`
looks into the acceptance arrays, and says so by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..cost.step_costs import StepCosts, round_shape
from .rows import StepPlan
from .settings import EngineSettings

if TYPE_CHECKING:
    from .core import EngineCore

_FORGET = 0.99  # of what past rounds have shown, per step: the last hundred steps count
_PRIOR_ROUNDS = 4.0


class DraftPolicy(Protocol):
    """Chooses the drafts that every request of a step proposes at its end. `observes`: wants to be told of rounds."""

    observes: bool

    def choose(self, core: EngineCore, plan: StepPlan) -> int:
        """Drafts per request, from what was scheduled."""

    def steady(self, requests: int) -> int | None:
        """The choice for steps that are rounds of so many requests, where nothing else matters; else None."""

    def observe(self, rounds: int, accepted: int, rejections: int) -> None:
        """Rounds with drafts of one step: accepted drafts in all, and how many rounds ended with a rejected one."""


class FixedDrafts:
    """The same number always."""

    observes = False

    def __init__(self, drafts: int) -> None:
        self._drafts = drafts

    def choose(self, core: EngineCore, plan: StepPlan) -> int:
        """The one number."""
        return self._drafts

    def steady(self, requests: int) -> int | None:
        """The one number."""
        return self._drafts

    def observe(self, rounds: int, accepted: int, rejections: int) -> None:
        """Nothing to learn."""


class ScheduleDrafts:
    """vLLM's `num_speculative_tokens_per_batch_size` (rule 18): by the requests of the step, prompts included.

    by_requests[n]: drafts for n scheduled requests; the last entry holds beyond.
    """

    observes = False

    def __init__(self, by_requests: Sequence[int]) -> None:
        self._by_requests = by_requests

    def choose(self, core: EngineCore, plan: StepPlan) -> int:
        """Drafts for the requests of the step."""
        return self.steady(plan.settled + len(plan.rows))

    def steady(self, requests: int) -> int:
        """Drafts for so many scheduled requests."""
        return self._by_requests[min(requests, len(self._by_requests) - 1)]

    def observe(self, rounds: int, accepted: int, rejections: int) -> None:
        """Nothing to learn."""


def schedule_lookup(ranges: Sequence[Sequence[int]], most_drafts: int) -> tuple[int, ...]:
    """Drafts by number of requests, from vLLM's [first, last, drafts] ranges.

    Gaps and everything behind the last range carry the previous length on; no length exceeds `most_drafts`.
    """
    lookup = [0] * (ranges[-1][0] + 1)
    for first, _, drafts in ranges:
        lookup[first:] = [min(drafts, most_drafts)] * (len(lookup) - first)
    return tuple(lookup)


class RoundPrices:
    """Milliseconds of a round of a batch for every draft length, by batch and coarse context."""

    def __init__(self, costs: StepCosts, most_drafts: int, serial: bool, asynchronous: bool) -> None:
        self._costs = costs
        self._most = most_drafts
        self._serial = serial
        self._asynchronous = asynchronous
        self._known: dict[tuple[int, int], np.ndarray] = {}

    def of(self, requests: int, context_tokens: int) -> np.ndarray:
        """A round that verifies 0, 1, .. K drafts and proposes as many; contexts within a sixteenth count as equal."""
        mean = context_tokens // max(1, requests)
        coarse = max(0, mean.bit_length() - 5)
        key = (requests, mean >> coarse << coarse)
        prices = self._known.get(key)
        if prices is None:
            prices = self._known[key] = np.array([self._round_ms(requests, key[1], k) for k in range(self._most + 1)])
        return prices

    def _round_ms(self, requests: int, mean_context: int, drafts: int) -> float:
        passes = max(1, drafts) if self._serial else 1
        terms = self._costs.terms(round_shape(requests, drafts, requests * mean_context), passes)
        return terms.host_and_step_ms(self._asynchronous)[1]


class GoodputDrafts:
    """The most expected committed tokens per millisecond, from an acceptance estimate and the calibration.

    The estimate is one chance for every draft token: accepted / (accepted + rounds with a rejection), over rounds that
    fade with a factor of 0.99 a step. It starts from `prior`, worth four rounds. At 0 drafts nothing is learnt.
    """

    observes = True

    def __init__(self, prices: RoundPrices, most_drafts: int, prior: float = 0.7) -> None:
        self._prices = prices
        self._lengths = np.arange(most_drafts + 1)
        self._accepted = prior * _PRIOR_ROUNDS
        self._rejections = (1 - prior) * _PRIOR_ROUNDS

    def choose(self, core: EngineCore, plan: StepPlan) -> int:
        """The best number for the requests of the step."""
        requests = plan.settled + len(plan.rows)
        context = _context_tokens(core, plan)
        alpha = self._accepted / (self._accepted + self._rejections)
        commits = np.cumsum(alpha**self._lengths)
        return int(np.argmax(commits / self._prices.of(requests, context)))

    def steady(self, requests: int) -> int | None:
        """The estimate moves with every step."""
        return None

    def observe(self, rounds: int, accepted: int, rejections: int) -> None:
        """Learn from the rounds of one step."""
        self._accepted = _FORGET * self._accepted + accepted
        self._rejections = _FORGET * self._rejections + rejections


class ClairvoyantDrafts:
    """A bound, not a policy: the number that commits the most per millisecond, knowing what will be accepted."""

    observes = False

    def __init__(self, prices: RoundPrices, most_drafts: int) -> None:
        self._prices = prices
        self._lengths = np.arange(most_drafts + 1)[:, None]

    def choose(self, core: EngineCore, plan: StepPlan) -> int:
        """The best number for the next round of the requests of the step."""
        accepted, left = core.upcoming(plan)
        if not len(accepted):
            return int(self._lengths[-1, 0])
        context = _context_tokens(core, plan)
        commits = np.minimum(np.minimum(accepted, self._lengths) + 1, left).sum(axis=1)
        return int(np.argmax(commits / self._prices.of(len(accepted), context)))

    def steady(self, requests: int) -> int | None:
        """Every round is another."""
        return None

    def observe(self, rounds: int, accepted: int, rejections: int) -> None:
        """Nothing to learn."""


def _context_tokens(core: EngineCore, plan: StepPlan) -> int:
    """Computed tokens of the step's requests: before a round, after a prompt chunk."""
    return core.settled.context + sum([one.start if one.decodes else one.start + one.tokens for one in plan.rows])


def draft_policy(settings: EngineSettings, costs: StepCosts) -> DraftPolicy:
    """The policy of an arm; its estimates and past do not outlive a replica."""
    most = settings.num_speculative_tokens
    if settings.draft_schedule is not None:
        return ScheduleDrafts(settings.draft_schedule)
    if settings.draft_policy == "fixed" or not most:
        return FixedDrafts(most)
    prices = RoundPrices(costs, most, settings.serial_drafting, settings.async_scheduling)
    return GoodputDrafts(prices, most) if settings.draft_policy == "goodput" else ClairvoyantDrafts(prices, most)
