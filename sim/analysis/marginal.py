"""What each further draft token costs and brings at one load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from ..engine.records import Ints


class MarginalRow(TypedDict):
    """Draft position, P(committed) per round, ms that it adds to a round, ms that it saves, and whether it pays."""

    position: int
    p_committed: float
    adds_ms: float
    saves_ms: float
    pays: bool


def marginal_rows(
    committed_at: Ints, delivered_at: Ints, rounds: int, step_ms: Callable[[int], float], positions: int
) -> list[MarginalRow]:
    """Rows for draft positions 1 to `positions`: k, or k + 1 where the acceptance model reaches it.

    committed_at, delivered_at: of `SamplerCounts`; A_i = delivered_at[i] / rounds, the tokens of a round at k = i.
    step_ms(i): T_i, the round time at k = i and the arm's mean decode batch and context, T_0 the baseline's step.
    Position i saves p_committed * T_(i-1) / A_(i-1). No rounds, no rows.
    """
    rows: list[MarginalRow] = []
    if not rounds:
        return rows
    before_ms = step_ms(0)
    for position in range(1, positions + 1):
        p_committed = float(committed_at[position - 1]) / rounds
        round_ms = step_ms(position)
        committed = float(delivered_at[position - 1]) / rounds
        adds_ms, saves_ms = round_ms - before_ms, p_committed * before_ms / committed
        rows.append(
            {
                "position": position,
                "p_committed": p_committed,
                "adds_ms": adds_ms,
                "saves_ms": saves_ms,
                "pays": saves_ms > adds_ms,
            }
        )
        before_ms = round_ms
    return rows
