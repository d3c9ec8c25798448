"""Every acceptance model in one form: odds by draft position, spread over requests and over output positions.

P(draft token i accepted | all before it were), i counting from 0, for a round at output position p of request r:

    1 / (1 + odds_against[i] * hardness),    hardness = exp(-(sigma * z[r] + x[r, p + i]))

z is standard normal, or partly the standard score of the request's log output length (`LengthLink`); x is a
stationary AR(1) over output positions, correlation phi, standard deviation memory_sd. Odds of 0 and infinity are
probabilities of 1 and 0, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGEST_LOGIT = 300.0  # keeps the hardness positive and finite, so that odds of 0 and infinity stay what they are
_LARGEST_SCORE = 2.5  # lengths further from the median than any measured one move acceptance no further


@dataclass(frozen=True, slots=True)
class LengthLink:
    """How a request's acceptance goes with its output length, in tokens: long answers tend to be easy ones.

    correlation: of the request's shift with the standard score of the log length, (ln tokens - ln median) / log_sd.
    """

    correlation: float
    median_tokens: float
    log_sd: float

    def scores(self, output_tokens: NDArray[np.int64]) -> Floats:
        """Standard scores of lengths, cut at 2.5 to either side."""
        scores: Floats = (np.log(output_tokens) - np.log(self.median_tokens)) / self.log_sd
        return np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)


@dataclass(frozen=True, slots=True)
class AcceptanceLaw:
    """odds_against: one entry per draft position, the last one holds for all deeper ones.

    measured_depth: how many draft positions were measured; None where the model has no such end.
    """

    odds_against: tuple[float, ...]
    sigma: float = 0.0
    phi: float = 0.0
    memory_sd: float = 0.0
    measured_depth: int | None = None
    length_link: LengthLink | None = None

    def shifts(self, effects: Floats, output_tokens: NDArray[np.int64]) -> Floats:
        """Each request's shift of the logit, from one standard normal a request and its output length."""
        link = self.length_link
        if link is None:
            return self.sigma * effects
        own = np.sqrt(1 - link.correlation**2)
        shifts: Floats = self.sigma * (own * effects + link.correlation * link.scores(output_tokens))
        return shifts

    def odds_at(self, draft_position: int) -> float:
        """Odds against acceptance at a draft position, counted from 0."""
        return self.odds_against[min(draft_position, len(self.odds_against) - 1)]


def odds_against(probability: Floats) -> Floats:
    """(1 - p) / p; infinite for 0."""
    with np.errstate(divide="ignore", over="ignore"):
        odds: Floats = (1 - probability) / probability
    return odds


def hardness_of(logit_shift: Floats) -> Floats:
    """The factor on the odds against acceptance, from a shift of the logit of acceptance."""
    hardness: Floats = np.exp(np.clip(-logit_shift, -_LARGEST_LOGIT, _LARGEST_LOGIT))
    return hardness


def probability(odds: float, hardness: Floats) -> Floats:
    """P(accepted) from odds against it."""
    with np.errstate(over="ignore"):
        accepted: Floats = 1 / (1 + odds * hardness)
    return accepted


def moved_odds(odds: Floats, wanted: Floats, seen: Floats) -> Floats:
    """Odds against, moved by what a log that shows `seen` still lacks of `wanted`; certain rates stay as they are."""
    free = (wanted > 0) & (wanted < 1) & (seen > 0) & (seen < 1)
    wanted_odds, seen_odds = (odds_against(np.where(free, rates, 0.5)) for rates in (wanted, seen))
    moved: Floats = np.where(free, odds * wanted_odds / seen_odds, odds)
    return moved
