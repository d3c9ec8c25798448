"""Records as named columns for files: one row per step, one row per request. NaN where there is no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.records import Records, Status, Steps
from ..workload.requests import Requests

Columns = dict[str, NDArray[Any]]


def step_columns(steps: Steps, replication: int, replica: int) -> Columns:
    """Every column of one replica's steps, with the step's index and duration."""
    count = len(steps)
    columns: Columns = {
        "replication": np.full(count, replication),
        "replica": np.full(count, replica),
        "step": np.arange(count),
    }
    columns |= {field.name: getattr(steps, field.name) for field in fields(steps)}
    columns["duration_ms"] = steps.duration_ms
    return columns


def request_columns(records: Records, requests: Requests, replication: int, slice_names: Sequence[str]) -> Columns:
    """Every column of the requests, with slice, lengths and latencies; a failed request has no latencies."""
    left = records.requests
    columns: Columns = {
        "replication": np.full(len(left), replication),
        "request": np.arange(len(left)),
        "slice": np.array(slice_names, dtype=object)[requests.slice_index],
        "status": np.array([status.name.lower() for status in Status], dtype=object)[left.status],
        "prompt_tokens": requests.prompt_tokens,
        "prefix_hit_tokens": requests.prefix_hit_tokens,
        **_latencies(records),
    }
    return columns | {field.name: getattr(left, field.name) for field in fields(left) if field.name != "status"}


def _latencies(records: Records) -> Columns:
    """TTFT, TPOT, E2E latency, decode latency and queue time per request, from the steps that delivered."""
    left = records.requests
    queued, first, last = (np.full(len(left), np.nan) for _ in range(3))
    for replica, steps in enumerate(records.steps):
        here = np.flatnonzero((left.replica == replica) & (left.status == Status.COMPLETED))
        delivery_ms = records.delivery_ms(replica)
        queued[here] = steps.start_ms[left.first_scheduled_step[here]]
        first[here] = delivery_ms[left.first_token_step[here]]
        last[here] = delivery_ms[left.finish_step[here]]
    gaps = np.where(left.output_tokens > 1, left.output_tokens - 1.0, np.nan)
    return {
        "queue_ms": queued - left.arrival_ms,
        "ttft_ms": first - left.arrival_ms,
        "tpot_ms": (last - first) / gaps,
        "decode_ms": last - first,
        "e2el_ms": last - left.arrival_ms,
    }
