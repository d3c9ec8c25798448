"""Traces with a coarse clock: arrivals that share a timestamp because the recorder rounded it, and how to part them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_SHARED = 0.1  # share of gaps that are 0: below, a spread would change nothing that matters
LEAST_TICK_MS = 1.0
LEAST_GAPS = 20  # fewer positive ones show no clock
TOLERANCE = 0.02  # of a tick: clocks of 3 s are seen with gaps of 2.999 and 3.001 s
MOST_OFF = 0.01  # share of gaps that may be off

Floats = NDArray[np.float64]


def clock_tick_ms(arrival_ms: Floats) -> float | None:
    """The tick of a clock so coarse that many arrivals share a time, or None.

    At least a tenth of the gaps are 0 and nearly all others are multiples of one tick. Bursts that a load generator
    sends on a grid look the same: nothing in the times tells them apart.
    """
    gaps = np.diff(arrival_ms)
    positive = gaps[gaps > 0]
    if len(positive) < LEAST_GAPS or len(positive) > (1 - LEAST_SHARED) * len(gaps):
        return None
    smallest = float(np.quantile(positive, 0.05))
    multiples = np.maximum(np.rint(positive / smallest), 1)
    tick_ms = float(positive.sum() / multiples.sum())
    off = np.abs(positive - multiples * tick_ms) > TOLERANCE * tick_ms
    return tick_ms if tick_ms >= LEAST_TICK_MS and off.mean() <= MOST_OFF else None


def spread_over_ticks(arrival_ms: Floats, tick_ms: float, rng: np.random.Generator) -> Floats:
    """Each burst spread over the tick that begins with it, as independent arrivals would be: sorted uniform draws.

    One draw for each row of the trace, none of them before its recorded time or after the next burst's.
    """
    starts = np.flatnonzero(np.diff(arrival_ms, prepend=-np.inf) > 0)
    widths = np.minimum(np.diff(arrival_ms[starts], append=np.inf), tick_ms)
    width = np.repeat(widths, np.diff(starts, append=len(arrival_ms)))
    return np.sort(arrival_ms + rng.random(len(arrival_ms)) * width)
