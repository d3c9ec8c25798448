"""What an engine's log would show of an acceptance law: conditional acceptance by draft position, over all rounds."""

from __future__ import annotations

import numpy as np

from .law import Floats, probability

_CHUNK_VALUES = 1 << 20


def pooled_conditional(odds: Floats, hardness: Floats) -> Floats:
    """Expected log of rounds with len(odds) drafts: P(position i accepted | all before it were), pooled over rounds.

    odds: against acceptance, by draft position. hardness[r, p]: request r at output position p, with len(odds)
    positions past the output's end. Rounds start at p = 1 and follow each other; the chance that one starts at p is
    carried along instead of drawn, so that the result is smooth in the odds. A draft position that is never reached is
    nan.
    """
    reached = np.zeros(len(odds) + 1)
    chunk = max(1, _CHUNK_VALUES // (hardness.shape[1] * len(reached)))
    for first in range(0, len(hardness), chunk):
        reached += _reached(odds, np.ascontiguousarray(hardness[first : first + chunk].T))
    with np.errstate(invalid="ignore"):
        conditional: Floats = reached[1:] / reached[:-1]
    return conditional


def _reached(odds: Floats, hardness: Floats) -> Floats:
    """Expected rounds that accept at least 0, 1, .. k draft tokens; hardness is [position, request]."""
    k = len(odds)
    length = len(hardness) - k
    survival = np.ones((length, k + 1, hardness.shape[1]))
    for i in range(k):
        survival[:, i + 1] = survival[:, i] * probability(odds[i], hardness[i : i + length])
    accepted_exactly = survival.copy()
    accepted_exactly[:, :k] -= survival[:, 1:]
    starts = np.zeros((length + k + 1, hardness.shape[1]))
    starts[1] = 1.0
    for position in range(1, length):
        starts[position + 1 : position + k + 2] += starts[position] * accepted_exactly[position]
    reached: Floats = np.einsum("pr,pir->i", starts[:length], survival)
    return reached
