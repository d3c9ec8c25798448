"""All replicas' steps end to end in one set of columns: a step is its replica's offset plus its own index there."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..engine.records import Floats, Ints, Records, Status, Steps


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps of all replicas, when each delivers (ms), each replica's offset, and the replica of each request."""

    steps: Steps
    delivery_ms: Floats
    offset: Ints
    replica: Ints

    def at(self, request: Ints, step: Ints) -> Ints:
        """Positions in `steps` of the requests' own step indices."""
        return np.asarray(self.offset[self.replica[request]] + step)


def timeline(records: Records) -> Timeline:
    """The records' steps on one axis of positions, replica after replica."""
    steps = records.steps[0]
    if len(records.steps) > 1:
        columns = {f.name: np.concatenate([getattr(one, f.name) for one in records.steps]) for f in fields(Steps)}
        steps = Steps(**columns)
    delivery_ms = np.concatenate([records.delivery_ms(replica) for replica in range(len(records.steps))])
    lengths = [len(one) for one in records.steps]
    offset = np.cumsum([0, *lengths[:-1]])
    return Timeline(steps, delivery_ms, offset, records.requests.replica)


def completed_requests(records: Records, first_kept: int = 0) -> Ints:
    """Indices of completed requests, without the first `first_kept` of all requests in order of arrival."""
    order = np.argsort(records.requests.arrival_ms, kind="stable")[first_kept:]
    kept = np.zeros(len(records.requests), np.bool_)
    kept[order] = True
    return np.flatnonzero(kept & (records.requests.status == Status.COMPLETED))


def prefix_sums(values: Floats) -> Floats:
    """Sums before each position: the sum over [a, b) is `prefix[b] - prefix[a]`."""
    return np.concatenate([[0.0], np.cumsum(values)])
