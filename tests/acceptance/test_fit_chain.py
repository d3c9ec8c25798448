"""Laws fitted to logs: a known law is found again, and a recorded log predicts the half that it was not fitted on."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from sim.acceptance.fit_chain import SequenceWorld, fit_chain, measured_rates
from sim.acceptance.fit_profile import fit_law
from sim.acceptance.law import AcceptanceLaw, LengthLink, odds_against
from sim.acceptance.replay import log_sample
from sim.acceptance.round_sample import RoundSample, sample_of, stepping_window, walked
from sim.formats.acceptance_log import AcceptanceLog, LogSequence, read_acceptance_log
from sim.inputs.errors import InputError
from sim.inputs.profile import ChainLaw

DATA = Path(__file__).resolve().parents[3] / "shared/data/acceptance"
KNOWN = AcceptanceLaw(
    tuple(odds_against(np.array([0.72, 0.66, 0.62, 0.6])).tolist()), 0.5, 0.9, 0.8, 4, LengthLink(0.4, 150.0, 0.6)
)


@lru_cache
def known_world() -> SequenceWorld:
    lengths = np.clip(np.random.default_rng(2).lognormal(np.log(150), 0.6, 500), 5, 1500).astype(np.int64)
    return SequenceWorld(lengths, 9, seed=40)


@lru_cache
def refitted() -> AcceptanceLaw:
    return fit_chain(known_world().log(KNOWN, 4), 4, (0.8, 0.9, 0.95))


@pytest.mark.parametrize("k", range(1, 9))
def test_a_known_law_predicts_other_draft_lengths_from_its_log(k):
    prediction = SequenceWorld(known_world().lengths, 9, seed=41).log(refitted(), k)
    assert prediction.tokens_per_round == pytest.approx(known_world().log(KNOWN, k).tokens_per_round, rel=0.03)


def test_a_known_law_is_found_again():
    law = refitted()
    assert law.length_link.correlation == pytest.approx(0.4, abs=0.12)
    assert law.sigma == pytest.approx(0.5, abs=0.12)
    assert law.memory_sd > 0.4
    seen, truth = known_world().log(law, 4), known_world().log(KNOWN, 4)
    assert seen.request_means()[0].std() == pytest.approx(truth.request_means()[0].std(), rel=0.05)
    assert seen.autocovariances()[:4] == pytest.approx(truth.autocovariances()[:4], rel=0.25)


def test_with_memory_first_position_acceptance_falls_with_the_draft_length():
    first = [measured_rates(known_world().log(KNOWN, k), k, 1)[0] for k in (1, 3, 8)]
    without = AcceptanceLaw(KNOWN.odds_against, KNOWN.sigma)
    flat = [float(np.mean(known_world().log(without, k).accepted > 0)) for k in (1, 8)]
    shown = [float(np.mean(known_world().log(KNOWN, k).accepted > 0)) for k in (1, 3, 8)]
    assert shown[0] - 0.01 > shown[1] > shown[2]
    assert abs(flat[1] - flat[0]) < 0.5 * (shown[0] - shown[2])
    assert first[0] == pytest.approx(shown[0])


def test_a_law_without_spread_is_found_without_spread():
    plain = AcceptanceLaw((0.5,))
    world = SequenceWorld(np.full(400, 200), 4, seed=3)
    law = fit_chain(world.log(plain), 4, (0.9,))
    assert law.sigma < 0.12
    assert law.memory_sd < 0.25
    assert 1 / (1 + np.array(law.odds_against)) == pytest.approx(2 / 3, abs=0.02)


def sample(*sequences: list[int], k: int = 4) -> RoundSample:
    arrays = [np.array(one) for one in sequences]
    return sample_of(arrays, [np.full(len(one), k) for one in arrays], [sum(one) + len(one) + 1 for one in sequences])


def test_what_a_sample_shows():
    log = sample([1, 0, 4, 2, 3, 4], [0, 1])  # the last round of each is left out
    assert log.rounds.tolist() == [5, 1]
    assert log.tokens_per_round == pytest.approx(1 + 10 / 6)
    assert [one.tolist() for one in log.reached(4)] == [[6, 4, 3, 2], [4, 3, 2, 1]]
    means, which = log.request_means()
    assert (means.tolist(), which.tolist()) == ([2.0], [0])
    assert log.rounds_to_commit(8).tolist() == [3]
    assert log.rounds_to_commit(9).tolist() == [4]


def test_walks_leave_the_last_round_out():
    accepted = np.array([0, 2, 1, 0, 1, 0, 0], dtype=np.uint8)
    log = walked(accepted, None, np.array([0]), np.array([7]), 2)
    assert log.accepted.tolist() == [2, 1]  # the round at 6 ends with the output
    assert walked(accepted, None, np.array([0]), np.array([1]), 2).accepted.tolist() == []


def test_stepping_windows():
    follows = sample_of([np.array([5, 2, 0, 0])], [np.array([5, 7, 6, 5])], [20])
    assert stepping_window(follows) == 5
    assert stepping_window(sample([1, 1, 1])) is None


def test_too_little_is_refused():
    from sim.acceptance.fit_profile import fit_tasks

    log = AcceptanceLog("a.jsonl", False, (LogSequence("1", None, np.array([1, 2]), np.array([3, 3])),), 3)
    with pytest.raises(InputError, match="at least 10 sequences"):
        fit_tasks(log, {})


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not there")
def test_a_recorded_chain_predicts_its_other_half():
    """One split; benchmarks/acceptance_truth.py has many. The iid alpha of the same half misses the tails."""
    log = read_acceptance_log(DATA / "eagle_chain_k6_llama3_8b_specbench.jsonl")
    parts = ([], [])
    for category in log.categories:
        names = sorted({one.request_id for one in log.of_task(category)})
        for one in log.of_task(category):
            parts[names.index(one.request_id) % 2].append(one)
    fitted, other = (log_sample(log, part) for part in parts)
    law = fit_chain(fitted, 6, (0.95, 0.98))
    alpha = fitted.accepted.sum() / (fitted.accepted.sum() + np.sum(fitted.accepted < 6))
    world = SequenceWorld(other.output_tokens, 6, seed=12)
    seen, flat = world.log(law), world.log(AcceptanceLaw((float((1 - alpha) / alpha),)))

    def p90(rounds):
        return np.percentile(rounds.rounds_to_commit(), 90)

    def spread(rounds):
        return rounds.request_means()[0].std()

    assert seen.tokens_per_round == pytest.approx(other.tokens_per_round, rel=0.03)
    assert p90(seen) == pytest.approx(p90(other), rel=0.08)
    assert spread(seen) == pytest.approx(spread(other), rel=0.15)
    assert abs(p90(flat) / p90(other) - 1) > 0.08
    assert spread(flat) < 0.6 * spread(other)


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not there")
def test_a_fitted_law_keeps_the_link_with_length():
    """Dropping it would lower the tokens per round of this log by 5 %."""
    log = read_acceptance_log(DATA / "eagle1_tree_vicuna7b_specbench.jsonl")
    sequences = list(log.sequences)
    law = fit_law(log, sequences, 0.8)
    assert isinstance(law, ChainLaw)
    assert law.length_link.correlation > 0.3
    assert law.simulated.tokens_per_round == pytest.approx(law.observed.tokens_per_round, rel=0.01)
