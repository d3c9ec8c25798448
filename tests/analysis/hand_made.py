"""Records written by hand: steps with given parts, and requests told as one letter per step.

P prefill, F prefill that delivers a token, D decode, p and d left out while prefilling or decoding, x preempted.
"""

import numpy as np

from sim.engine.records import Phase, Records, RequestRecords, SamplerCounts, Segments, Status, Steps
from sim.workload.requests import Requests

PARTS = ("host_ms", "target_ms", "target_decode_ms", "kv_update_ms", "sampling_ms", "draft_ms")
PHASE = {
    "P": Phase.PREFILL,
    "F": Phase.PREFILL,
    "D": Phase.DECODE,
    "p": Phase.PREFILL_LEFT_OUT,
    "d": Phase.DECODE_LEFT_OUT,
    "x": Phase.PREEMPTED,
}


def steps(parts, start_ms=0.0, **columns):
    """Consecutive steps; `parts` has one row of host, target, target_decode, kv_update, sampling, draft a step."""
    table = np.array(parts, float).reshape(-1, len(PARTS))
    durations = table.sum(axis=1) - table[:, 2]
    starts = start_ms + np.concatenate([[0.0], np.cumsum(durations)[:-1]])
    given = dict(zip(PARTS, table.T, strict=True)) | {"start_ms": starts}
    given |= {name: np.array(values) for name, values in columns.items()}
    zeros = {name: np.zeros(len(table), int) for name in Steps.__dataclass_fields__ if name not in given}
    return Steps(**given, **zeros)


def story(phases, arrival_ms=0.0, first_step=0, replica=0, tokens=None, own_prefill_ms=0.0):
    """One completed request; `tokens` per delivery, 1 each unless given. No phases: a request that failed."""
    return {
        "phases": phases,
        "arrival_ms": arrival_ms,
        "first_step": first_step,
        "replica": replica,
        "tokens": tokens or [1] * sum(phase in "FD" for phase in phases),
        "own_prefill_ms": own_prefill_ms,
    }


def segment_rows(request, one):
    """(request, phase, first_step, last_step, delivers) of one story."""
    rows, begin = [], 0
    phases = one["phases"]
    for i, letter in enumerate(phases):
        if letter == "F" or i + 1 == len(phases) or PHASE[letter] != PHASE[phases[i + 1]]:
            span = (one["first_step"] + begin, one["first_step"] + i)
            rows.append((request, int(PHASE[letter]), *span, letter == "F"))
            begin = i + 1
    return rows


def counts(accepted_at=(), committed_at=(0,), delivered_at=(0, 0), kept_at=(), proposed_at=(0,), **numbers):
    names = ("rounds", "num_drafts", "draft_tokens", "accepted_tokens", "draft_tokens_cut", "committed_by_rounds")
    filled = {name: numbers.get(name, 0) for name in names}
    arrays = {
        "accepted_at": accepted_at,
        "committed_at": committed_at,
        "delivered_at": delivered_at,
        "kept_at": kept_at,
        "proposed_at": proposed_at,
    }
    return SamplerCounts(**filled, **{name: np.array(values, int) for name, values in arrays.items()})


def records(replicas, stories, async_delivery=False, sampler=None, usable_blocks=None):
    """Records of hand-made steps (one per replica) and stories."""
    rows = [row for i, one in enumerate(stories) for row in segment_rows(i, one)]
    rows.sort(key=lambda row: row[3])  # as an engine would close them: requests interleaved
    request, phase, first, last, delivers = np.array(rows, int).reshape(-1, 5).T
    requests = RequestRecords(
        arrival_ms=np.array([one["arrival_ms"] for one in stories], float),
        status=np.array([Status.COMPLETED if one["phases"] else Status.FAILED for one in stories]),
        replica=np.array([one["replica"] for one in stories]),
        output_tokens=np.array([sum(one["tokens"]) for one in stories]),
        first_scheduled_step=np.array([one["first_step"] if one["phases"] else -1 for one in stories]),
        first_token_step=np.array(
            [one["first_step"] + one["phases"].find("F") if one["phases"] else -1 for one in stories]
        ),
        finish_step=np.array([one["first_step"] + len(one["phases"]) - 1 if one["phases"] else -1 for one in stories]),
        preemptions=np.array([(" " + one["phases"]).replace("xx", "x").count("x") for one in stories]),
        prefill_passes=np.array([sum(letter in "PF" for letter in one["phases"]) for one in stories]),
        rounds=np.array([one["phases"].count("D") for one in stories]),
        num_drafts=np.zeros(len(stories), int),
        draft_tokens=np.zeros(len(stories), int),
        accepted_tokens=np.zeros(len(stories), int),
        draft_tokens_cut=np.zeros(len(stories), int),
        own_prefill_ms=np.array([one["own_prefill_ms"] for one in stories], float),
    )
    segments = Segments(request, phase, first, last, delivers.astype(bool))
    return Records(replicas, requests, segments, sampler or counts(), async_delivery, usable_blocks)


def workload(stories, prompt_tokens=10, slice_index=None):
    """The requests of the stories."""
    count = len(stories)
    return Requests(
        arrival_ms=np.array([one["arrival_ms"] for one in stories], float),
        prompt_tokens=np.full(count, prompt_tokens),
        output_tokens=np.array([max(1, sum(one["tokens"])) for one in stories]),
        slice_index=np.zeros(count, int) if slice_index is None else np.array(slice_index),
        prefix_hit_tokens=np.zeros(count, int),
    )
