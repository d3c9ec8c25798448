"""Random streams: one independent generator per source of chance and replication.

A stream never depends on what another one draws, so that a change of k, of the engine or of the set of arms leaves
arrivals, lengths and acceptance as they were (common random numbers).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """Sources of chance. The numbers are part of what a seed means: append, never renumber."""

    ARRIVALS = 0
    SLICES = 1
    PROMPT_TOKENS = 2
    OUTPUT_TOKENS = 3
    ACCEPTANCE = 4
    REQUEST_EFFECT = 5
    ACCEPTANCE_MEMORY = 6
    CLOCK_TICKS = 7
    LOG_SEQUENCE = 10
    LOG_NEXT_SEQUENCE = 11
    LOG_BONUS = 12
    NGRAM_RUN = 13
    NGRAM_LENGTH = 14


def generator(seed: int, replication: int, stream: Stream, substream: int = 0) -> np.random.Generator:
    """The generator of one stream; `substream` tells slices apart."""
    key = (replication, int(stream), substream)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
