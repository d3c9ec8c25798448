"""Every shipped scenario runs, and answers the question of its first comment as its comment says."""

from functools import cache
from pathlib import Path

import pytest

from sim.answers.run import run_scenario
from sim.report.sentence import answer_sentence

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
SCENARIOS = sorted(FOLDER.glob("*.yaml"))
FEWER = {"draft-memory": ("workload.requests=40",), "bursty-slo": ("workload.requests=500",)}


@cache
def document(name, *sets):
    sets = ("run.replications=2", *FEWER.get(name, ("workload.requests=150",)), *sets)
    return run_scenario(FOLDER / f"{name}.yaml", sets).document


def ratio(name, metric, arm="speculative", *sets):
    return document(name, *sets)["comparison"][arm][metric]["ratio"]


def test_there_are_enough_of_them():
    assert len(SCENARIOS) >= 12


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_it_asks_a_question_and_gets_an_answer(path):
    first = path.read_text("utf-8").splitlines()[0]
    assert first.startswith("# ")
    found = document(path.stem)
    assert answer_sentence(found)
    for arm in found["arms"].values():
        assert arm["completed"]
        assert arm["failed"] == 0


def test_chat_gains_less_with_more_users():
    few = ratio("chat-concurrency", "mean_tpot_ms", "speculative", "workload.arrivals.concurrency=4")
    many = ratio("chat-concurrency", "mean_tpot_ms", "speculative", "workload.arrivals.concurrency=128")
    assert few < 0.75
    assert few < many - 0.1


def test_code_accepts_much_and_three_drafts_are_about_best():
    arms = document("code-high-acceptance")["arms"]
    assert arms["k5"]["committed_tokens_per_round"] > arms["speculative"]["committed_tokens_per_round"] > 2.3
    assert ratio("code-high-acceptance", "mean_tpot_ms") < 0.75


def test_translation_loses_with_four_drafts():
    assert ratio("translation-loses", "mean_tpot_ms") > 1
    assert ratio("translation-loses", "mean_tpot_ms", "k1") < ratio("translation-loses", "mean_tpot_ms")


def test_summaries_gain_without_a_draft_model():
    arms = document("ngram-summarisation")["arms"]
    assert ratio("ngram-summarisation", "mean_tpot_ms") < 0.8
    arm = arms["speculative"]
    assert arm["num_gpu_blocks"] == arms["baseline"]["num_gpu_blocks"]
    assert arm["time_share"]["drafting"] < 0.02
    # Rounds without a match draft nothing, so that acceptance length, over rounds with drafts, is larger.
    assert arm["spec_decode_acceptance_length"] > arm["committed_tokens_per_round"]


def test_one_mtp_token_pays():
    arms = document("mtp-one-token")["arms"]
    assert ratio("mtp-one-token", "mean_tpot_ms") < 0.75
    assert 1.8 < arms["speculative"]["committed_tokens_per_round"] <= 2
    assert arms["k3"]["committed_tokens_per_round"] > arms["speculative"]["committed_tokens_per_round"]


def test_the_slice_that_loses_is_named_and_its_pool_mends_it():
    found = document("mixed-slices", "workload.requests=500")
    compared = found["comparison"]
    assert compared["speculative"]["mean_tpot_ms"]["ratio"] < 0.9
    assert compared["speculative"]["slices"]["translation"]["mean_tpot_ms"]["ratio"] > 1.1
    assert compared["pools"]["slices"]["translation"]["mean_tpot_ms"]["ratio"] < 1.05
    assert compared["pools"]["slices"]["chat"]["mean_tpot_ms"]["ratio"] < 0.75
    assert "Slice translation loses from speculation" in answer_sentence(found)


def test_bursts_meet_the_tpot_limit_only_with_speculation():
    arms = document("bursty-slo", "workload.requests=1500")["arms"]
    assert arms["speculative"]["p95_tpot_ms"] < 120 < arms["baseline"]["p95_tpot_ms"]
