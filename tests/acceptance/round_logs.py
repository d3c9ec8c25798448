"""Requests of equal length, and the log that an engine would keep of them: independent of how the runs were drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.workload.requests import Requests


@dataclass
class RoundLog:
    """accepted_counts[a]: rounds that accepted a draft tokens; rounds[r]: rounds of request r."""

    accepted_counts: np.ndarray
    rounds: np.ndarray

    @property
    def conditional(self):
        reached = np.cumsum(self.accepted_counts[::-1])[::-1]
        return reached[1:] / reached[:-1]


def requests_of(lengths, slice_index=None):
    lengths = np.asarray(lengths, dtype=np.int64)
    zeros = np.zeros_like(lengths)
    slices = zeros if slice_index is None else np.asarray(slice_index, dtype=np.int64)
    return Requests(zeros.astype(float), zeros + 10, lengths, slices, zeros)


def round_log(runs, requests, k):
    """Rounds start at output position 1; each one moves on by its accepted drafts and one more token."""
    position = np.ones(len(requests), dtype=np.int64)
    rounds = np.zeros(len(requests), dtype=np.int64)
    counts = np.zeros(k + 1, dtype=np.int64)
    running = np.flatnonzero(position < requests.output_tokens)
    while len(running):
        accepted = np.minimum(runs.accepted[runs.offsets[running] + position[running]], k).astype(np.int64)
        counts += np.bincount(accepted, minlength=k + 1)
        rounds[running] += 1
        position[running] += accepted + 1
        running = running[position[running] < requests.output_tokens[running]]
    return RoundLog(counts, rounds)
