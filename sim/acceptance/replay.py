"""Replay of logs: accepted runs by output position from recorded sequences.

A log by position is taken as it is. A log by round is exact at its own draft length k; the other positions follow the
nested rule: inside an accepted run of a the run that starts j tokens later is a - j, and the rejected position accepts
nothing. The bonus position of a fully accepted round is not known: it is drawn, with the rate of the log's deepest
draft position, and where it is accepted the run goes on into the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..formats.acceptance_log import AcceptanceLog, LogSequence
from ..inputs.acceptance_models import Replay
from ..workload.log_sequences import replayed_log, replayed_sequences
from ..workload.requests import Requests
from ..workload.streams import Stream
from .position_draws import flat_uniforms, request_blocks
from .round_sample import Ints, RoundSample, sample_of, walked

Bytes = NDArray[np.uint8]

ALWAYS_K = 255
_REJECTED, _ACCEPTED, _UNKNOWN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class ReplayedRuns:
    """Runs of the requests of one slice, flattened; drafted is None where k tokens are always drafted."""

    accepted: Bytes
    drafted: Bytes | None
    measured_depth: int | None


@dataclass(frozen=True, slots=True)
class SequenceValues:
    """One sequence by output position. values: what becomes of the draft token at each position, or the accepted runs.

    body: positions before its last round, which its end cut: where another sequence follows, it takes over there.
    """

    values: Bytes
    drafted: Bytes
    body: int


def replay_runs(
    replay: Replay, requests: Requests, slice_index: int, depth: int, base_dir: Path, seed: int, replication: int
) -> ReplayedRuns:
    """Each request of the slice replays the sequence that its length was taken from, or would have been.

    A request that is longer goes on with other sequences of the task, one that is shorter stops early.
    """
    log, sequences = replayed_log(replay, base_dir)
    templates = [sequence_values(one, log) for one in sequences]
    rate = 0.0 if log.by_position else bonus_rate(log, sequences)
    drawn = replayed_sequences(len(sequences), len(requests), slice_index, seed, replication)
    rows = np.flatnonzero(requests.slice_index == slice_index)
    accepted, drafted = [], []
    for block in request_blocks(requests.output_tokens[rows]):
        these = rows[block]
        lengths = requests.output_tokens[these]
        values, proposals = _sequences_of(templates, these, drawn[these], lengths, seed, replication)
        if log.by_position:
            accepted.append(np.minimum(values, depth))
        else:
            bonus = np.zeros(len(values), dtype=bool)
            if np.any(values == _UNKNOWN):
                bonus = flat_uniforms(seed, replication, Stream.LOG_BONUS, these, lengths) < rate
            accepted.append(nested_runs(values, bonus, lengths, depth))
        drafted.append(proposals)
    empty = np.zeros(0, dtype=np.uint8)
    always_k = all(one.drafted is None for one in sequences) or (log.k is not None and not log.by_position)
    return ReplayedRuns(
        np.concatenate([*accepted, empty]), None if always_k else np.concatenate([*drafted, empty]), log.deepest
    )


def nested_runs(values: Bytes, bonus: NDArray[np.bool_], lengths: Ints, depth: int) -> Bytes:
    """Accepted runs from what becomes of each position: how far the next rejected one is, at most `depth`.

    bonus: whether an unknown position is accepted. lengths: positions of each request; a run ends with its request.
    """
    accepted = (values == _ACCEPTED) | ((values == _UNKNOWN) & bonus)
    place = np.arange(len(values))
    ends = np.repeat(np.cumsum(lengths), lengths)
    stops = np.where(accepted, len(values), place)
    next_stop = np.minimum.accumulate(stops[::-1])[::-1]
    runs: Bytes = np.minimum(np.minimum(next_stop, ends) - place, depth).astype(np.uint8)
    return runs


def bonus_rate(log: AcceptanceLog, sequences: list[LogSequence]) -> float:
    """Acceptance at the deepest position of rounds, pooled: what a further draft token is taken to have."""
    sample = log_sample(log, sequences)
    full = int(np.sum((sample.accepted == sample.drafted) & (sample.drafted > 0)))
    reached = int(np.sum((sample.accepted >= sample.drafted - 1) & (sample.drafted > 0)))
    return full / reached if reached else 0.0


def log_sample(log: AcceptanceLog, sequences: list[LogSequence], k: int | None = None) -> RoundSample:
    """The rounds of a log: as recorded, or those that k drafts make of a log by position (default: its own k).

    Where the drafted length is not known, it is the longest accepted run of the log.
    """
    lengths = [one.output_tokens(by_position=log.by_position) for one in sequences]
    if log.by_position:
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        accepted = np.concatenate([one.accepted for one in sequences])
        drafts = [np.full(len(one.accepted), ALWAYS_K) if one.drafted is None else one.drafted for one in sequences]
        return walked(accepted, np.concatenate(drafts), starts, np.array(lengths), k or log.k or 1)
    longest = max(1, *(int(one.accepted.max()) for one in sequences))
    drafted = [np.full(len(one.accepted), longest) if one.drafted is None else one.drafted for one in sequences]
    return sample_of([one.accepted for one in sequences], drafted, lengths)


def reconstructed_share(log: AcceptanceLog, sequences: list[LogSequence], k: int) -> float:
    """Share of the rounds at k drafts whose accepted run is no recorded one; 0 where the replay is exact."""
    if log.by_position:
        return 0.0
    rate, rng = bonus_rate(log, sequences), np.random.Generator(np.random.PCG64(1))
    rounds = made_up = 0
    for one in sequences:
        template = sequence_values(one, log)
        length = np.array([len(template.values)])
        accepted = nested_runs(template.values, rng.random(len(template.values)) < rate, length, k)
        recorded = {start: which for which, start in enumerate(np.concatenate([[1], 1 + np.cumsum(one.accepted + 1)]))}
        position = 1
        while position < template.body:
            which = recorded.get(position)
            drafts = ALWAYS_K if one.drafted is None or which is None else int(one.drafted[which])
            open_end = which is not None and k > drafts == log.deepest and one.accepted[which] == drafts
            made_up += which is None or open_end
            rounds += 1
            position += min(int(accepted[position]), int(template.drafted[position]), k) + 1
    return made_up / rounds if rounds else 0.0


def sequence_values(sequence: LogSequence, log: AcceptanceLog) -> SequenceValues:
    """A logged sequence by output position. Rounds with the most drafts of the log may have been cut to that number."""
    accepted, drafted = sequence.accepted, sequence.drafted
    if log.by_position:
        every = np.full(len(accepted), ALWAYS_K) if drafted is None else drafted
        return SequenceValues(accepted.astype(np.uint8), every.astype(np.uint8), len(accepted))
    drafts = np.full(len(accepted), ALWAYS_K) if drafted is None else drafted
    starts = np.concatenate([[1], 1 + np.cumsum(accepted + 1)])
    values = np.full(starts[-1], _ACCEPTED, dtype=np.uint8)
    values[0] = _REJECTED
    values[starts[1:] - 1] = np.where((accepted == drafts) & (drafts > 0), _UNKNOWN, _REJECTED)
    proposed = np.where(drafts == log.deepest, ALWAYS_K, drafts)
    proposals = np.concatenate([[0], np.repeat(proposed, accepted + 1)]).astype(np.uint8)
    return SequenceValues(values, proposals, int(starts[-2] if len(accepted) > 1 else starts[-1]))


def _sequences_of(
    templates: list[SequenceValues], rows: Ints, first: Ints, lengths: Ints, seed: int, replication: int
) -> tuple[Bytes, Bytes]:
    """Values and drafts of some requests, flattened; a sequence that follows is drawn at the position it starts."""
    own = np.array([len(one.values) for one in templates])
    longer = np.flatnonzero(lengths > own[first])
    draws = flat_uniforms(seed, replication, Stream.LOG_NEXT_SEQUENCE, rows[longer], lengths[longer])
    ends = np.cumsum(lengths[longer])
    spans = zip(longer.tolist(), ends.tolist(), lengths[longer].tolist(), strict=True)
    draws_of = {row: draws[end - length : end] for row, end, length in spans}
    parts: list[tuple[Bytes, Bytes]] = []
    for index, (sequence, length) in enumerate(zip(first.tolist(), lengths.tolist(), strict=True)):
        template, position, start = templates[sequence], 0, 0
        while length - position > len(template.values) - start:
            stop = template.body
            parts.append((template.values[start:stop], template.drafted[start:stop]))
            position += stop - start
            template = templates[int(draws_of[index][position] * len(templates))]
            start = min(1, template.body - 1)  # a sequence of the prefill's token alone has nothing else to give
        stop = start + length - position
        parts.append((template.values[start:stop], template.drafted[start:stop]))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
