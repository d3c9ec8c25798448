"""The iid acceptance behind a dashboard's number: an acceptance rate or a mean acceptance length at a known k."""

from __future__ import annotations

from ..inputs.acceptance_models import AcceptanceLength, Rate
from ..inputs.errors import SpecsimError

DASHBOARD_WARNING = (
    "an acceptance rate or length is one number, read as the same chance for every draft token: it reproduces the mean "
    "at its own num_speculative_tokens, but cannot predict p95 latencies or another num_speculative_tokens, because it "
    "knows neither draft positions nor how requests differ"
)


def dashboard_alpha(acceptance: Rate | AcceptanceLength) -> float:
    """alpha with alpha + alpha^2 + .. + alpha^k = k * rate, or = length - 1; exact to rounding.

    Raises SpecsimError for a length above k + 1, which no engine can print.
    """
    k = acceptance.num_speculative_tokens
    accepted = k * acceptance.acceptance_rate if isinstance(acceptance, Rate) else acceptance.acceptance_length - 1
    if accepted > k:
        raise SpecsimError(
            f"acceptance: acceptance_length {accepted + 1:g}, {k} drafts and the bonus token make at most {k + 1}, "
            "correct acceptance_length or num_speculative_tokens"
        )
    if accepted in (0, k):
        return accepted / k
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):  # the sum grows with alpha: halve down to one rounding step
        if _accepted_per_round(middle, k) < accepted:
            low = middle
        else:
            high = middle
    return high


def _accepted_per_round(alpha: float, k: int) -> float:
    total = 0.0
    for _ in range(k):
        total = alpha * (1 + total)
    return total
