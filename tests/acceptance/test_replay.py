"""Replay gives back what was logged: exactly at the log's own draft length, and by position at every one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from round_logs import requests_of, round_log

from sim.acceptance.build import build_runs
from sim.acceptance.replay import log_sample, nested_runs, reconstructed_share
from sim.acceptance.round_sample import walked
from sim.formats.acceptance_log import read_acceptance_log
from sim.inputs.acceptance_models import Iid, Replay
from sim.workload.log_sequences import replayed_lengths, replayed_sequences

CHAIN = Path(__file__).resolve().parents[3] / "shared/data/acceptance/eagle_chain_k6_llama3_8b_specbench.jsonl"


def log_file(folder, *lines):
    path = folder / "log.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def replayed(path, lengths, depth, task=None, seed=1, slice_index=None):
    """Runs of requests that all replay one log, and the requests."""
    requests = requests_of(lengths, slice_index)
    models = [Replay(kind="replay", path=str(path), task=task), Iid(kind="iid", alpha=0.5)]
    return build_runs(requests, models, depth, seed, 0), requests


def own_lengths(path, count, seed=1, task=None):
    return replayed_lengths(Replay(kind="replay", path=str(path), task=task), count, 0, Path(), seed, 0)


def test_the_nested_rule_by_hand(tmp_path):
    path = log_file(tmp_path, {"k": 3, "accepted": [2, 0, 3, 1]})
    runs, _ = replayed(path, own_lengths(path, 1), depth=4)
    # rounds start at 1 (2 accepted), 4 (none), 5 (all 3: the bonus at 8 is open), 9 (1)
    assert len(runs.accepted) == 11
    assert runs.accepted.tolist()[:5] == [0, 2, 1, 0, 0]
    assert runs.accepted.tolist()[5:] in ([3, 2, 1, 0, 1, 0], [4, 4, 3, 2, 1, 0])
    assert runs.drafted is None
    assert runs.measured_depth == 3


@settings(max_examples=100, deadline=None)
@given(
    rounds=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=4),
    extra=st.integers(1, 4),
    seed=st.integers(0, 50),
)
def test_exact_at_the_logs_own_draft_length(tmp_path_factory, rounds, extra, seed):
    path = log_file(tmp_path_factory.mktemp("replay"), *({"k": 4, "accepted": accepted} for accepted in rounds))
    lengths = own_lengths(path, 5, seed)
    runs, _ = replayed(path, lengths, 4 + extra, seed=seed)
    for row, sequence in enumerate(replayed_sequences(len(rounds), 5, 0, seed, 0).tolist()):
        position, seen = 1, []
        while position < lengths[row]:
            seen.append(min(int(runs.accepted[runs.offsets[row] + position]), 4))
            position += seen[-1] + 1
        assert seen == rounds[sequence]


def test_exact_where_draft_lengths_vary(tmp_path):
    drafts, accepted = [5, 4, 3, 5, 0, 2], [1, 0, 3, 2, 0, 2]
    path = log_file(tmp_path, {"k": drafts, "accepted": accepted})
    runs, _ = replayed(path, own_lengths(path, 1), 6)
    position, seen = 1, []
    while position < len(runs.accepted):
        d = min(int(runs.drafted[position]), 5)
        seen.append((d, min(int(runs.accepted[position]), d)))
        position += seen[-1][1] + 1
    assert seen == list(zip(drafts, accepted, strict=True))


def test_rounds_with_the_most_drafts_may_have_been_cut(tmp_path):
    """A look-up at k = 4: the matches of 4 tokens may have had more, the one of 2 tokens had 2."""
    path = log_file(tmp_path, {"k": [4, 0, 2, 4, 0], "accepted": [4, 0, 2, 1, 0]})
    runs, _ = replayed(path, own_lengths(path, 1), 8)
    assert runs.measured_depth == 4
    assert runs.drafted[1:].tolist() == [255] * 5 + [0] + [2] * 3 + [255] * 2 + [0]


def test_a_log_by_position_is_exact_at_every_draft_length(tmp_path):
    rng = np.random.default_rng(3)
    accepted = [rng.integers(0, 7, length).tolist() for length in (40, 90)]
    path = log_file(tmp_path, *({"k": 6, "accepted_at": one, "drafted_at": [6] * len(one)} for one in accepted))
    runs, _ = replayed(path, own_lengths(path, 20), 7)
    first = replayed_sequences(2, 20, 0, 1, 0)
    assert runs.accepted.tolist() == [run for sequence in first for run in accepted[sequence]]
    assert set(runs.drafted.tolist()) == {6}


def test_more_draft_positions_move_nothing(tmp_path):
    path = log_file(tmp_path, *({"k": 3, "accepted": [3, 3, 0, 3, 2, 3, 3, 3]} for _ in range(3)))
    lengths = [50, 9, 200]
    shallow, _ = replayed(path, lengths, 4)
    deep, _ = replayed(path, lengths, 9)
    assert np.array_equal(np.minimum(deep.accepted, 4), shallow.accepted)


def test_other_slices_and_lengths_move_nothing(tmp_path):
    path = log_file(tmp_path, *({"k": 3, "accepted": [3, 1, 0, 3, 2, 3, a % 4]} for a in range(9)))
    alone, _ = replayed(path, [80, 60, 40, 30], 5)
    mixed, _ = replayed(path, [80, 61, 90, 30], 5, slice_index=[0, 1, 0, 0])
    for row, length in ((0, 80), (2, 39), (3, 30)):  # a run may cross where the shorter output ends
        first, second = (runs.accepted[runs.offsets[row] :][: length - 5] for runs in (alone, mixed))
        assert np.array_equal(first, second)


def test_longer_outputs_go_on_with_other_sequences(tmp_path):
    """Two sequences of equal steps: 3 accepted of 3 or none; a long output shows both, in whole sequences."""
    path = log_file(tmp_path, {"k": 4, "accepted": [3] * 10}, {"k": 4, "accepted": [0] * 10})
    runs, requests = replayed(path, [2000] * 50, 5)
    counts = round_log(runs, requests, 4).accepted_counts
    easy = counts[3] / counts.sum()
    assert counts[1] + counts[2] < 0.02 * counts.sum()  # only where an output ends
    assert easy == pytest.approx(0.5, abs=0.06)


def test_one_token_sequences_end(tmp_path):
    path = log_file(tmp_path, {"accepted_at": [0]}, {"accepted_at": [0]})
    runs, _ = replayed(path, [30], 3)
    assert not runs.accepted.any()


def test_tasks(tmp_path):
    lines = [{"k": 2, "accepted": [2] * 9, "category": "easy"}, {"k": 2, "accepted": [0] * 9, "category": "hard"}]
    path = log_file(tmp_path, *lines)
    runs, _ = replayed(path, own_lengths(path, 9, task="hard"), 3, task="hard")
    assert not runs.accepted.any()
    assert own_lengths(path, 9, task="easy").tolist() == [28] * 9


def test_share_of_reconstructed_rounds(tmp_path):
    log = read_acceptance_log(log_file(tmp_path, {"k": 3, "accepted": [2, 0, 3, 1, 0, 0]}))
    sequences = list(log.sequences)
    assert reconstructed_share(log, sequences, 3) == 0
    # at 1: rounds at 1, 3; 4; 5, 7; ..: the one at 3 lies inside a recorded round
    assert 0 < reconstructed_share(log, sequences, 1) < 0.6
    assert 0 < reconstructed_share(log, sequences, 4) < 0.3  # the full round


def test_runs_end_with_their_request():
    values = np.array([1, 1, 1, 1, 0, 1], dtype=np.uint8)
    runs = nested_runs(values, np.zeros(6, dtype=bool), np.array([3, 3]), 9)
    assert runs.tolist() == [3, 2, 1, 1, 0, 1]


@pytest.mark.skipif(not CHAIN.exists(), reason="../shared/data is not there")
def test_a_recorded_log_comes_back():
    log = read_acceptance_log(CHAIN)
    lengths = own_lengths(CHAIN, 3000)
    runs, _ = replayed(CHAIN, lengths, 7)
    seen = walked(runs.accepted, None, runs.offsets, lengths, 6)
    recorded = log_sample(log, list(log.sequences))
    assert seen.tokens_per_round == pytest.approx(recorded.tokens_per_round, rel=0.02)  # 3000 draws of 560
    means, _ = seen.request_means()
    assert means.std() == pytest.approx(recorded.request_means()[0].std(), rel=0.06)
