"""Where decodes wait for prefill batches: their phases cut at the steps that only prefill."""

from __future__ import annotations

import numpy as np

from ..engine.records import Phase, Records, Segments
from .timeline import Timeline


def segments_with_pauses(records: Records, line: Timeline) -> Segments:
    """The segments, DECODE ones cut into DECODE and DECODE_LEFT_OUT wherever a step of their replica only prefills.

    The records leave them whole, so that a prefill batch costs nothing for each request that it lets wait. Grows with
    batches times requests: for pictures, not for sums.
    """
    segments = records.segments
    first = line.at(segments.request, segments.first_step)
    last = line.at(segments.request, segments.last_step)
    only_prefills = line.steps.only_prefills
    changed = np.zeros(len(only_prefills), np.int64)
    changed[1:] = only_prefills[1:] != only_prefills[:-1]
    changes = np.flatnonzero(changed)
    changes_until = np.cumsum(changed)

    decodes = segments.phase == Phase.DECODE
    pieces = np.where(decodes, changes_until[last] - changes_until[first], 0) + 1
    source = np.repeat(np.arange(len(first)), pieces)
    piece = np.arange(len(source)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start, stop = first[source], last[source]
    later = piece > 0
    start[later] = changes[changes_until[start[later]] + piece[later] - 1]
    stop[:-1] = np.where(later[1:], start[1:] - 1, stop[:-1])
    phase = segments.phase[source]
    phase[decodes[source] & only_prefills[start]] = Phase.DECODE_LEFT_OUT
    offset = first[source] - segments.first_step[source]
    return Segments(
        segments.request[source],
        phase,
        start - offset,
        stop - offset,
        segments.delivers[source] & (stop == last[source]),
    )
