"""Shipped profiles: complete, honest about what they are, and drawn as they are stored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from round_logs import requests_of, round_log

from sim.acceptance.build import build_runs
from sim.acceptance.compile import law_of
from sim.acceptance.law import AcceptanceLaw
from sim.acceptance.ngram_runs import NgramLaw
from sim.acceptance.round_sample import walked
from sim.inputs.acceptance_models import Named
from sim.inputs.catalog import profile_names, profile_path
from sim.inputs.errors import InputError, SpecsimError
from sim.inputs.load_profile import read_profile
from sim.inputs.profile import LookupLaw

SHIPPED = profile_names()
LOGGED = [name for name in SHIPPED if read_profile(profile_path(name)).kind == "fitted"]


def named(name, task=None):
    return Named(kind="named", name=name, task=task)


def drawn(name, k, lengths, task=None):
    requests = requests_of(lengths)
    runs = build_runs(requests, [named(name, task)], k + 1, 5, 0)
    return walked(runs.accepted, runs.drafted, runs.offsets, requests.output_tokens, k)


def lengths_like(law, count=1500):
    link = law.length_link
    rng = np.random.default_rng(6)
    lengths = np.exp(np.log(link.median_tokens) + link.log_sd * rng.standard_normal(count))
    return np.clip(lengths, 8, 3000).astype(np.int64)


def test_what_is_shipped():
    assert {"eagle-chain-llama-3-8b", "ngram-2-4-vicuna-7b", "eagle-3-llama-3.1-8b-published"} <= set(SHIPPED)
    for name in SHIPPED:
        profile = read_profile(profile_path(name))
        assert profile.name == name
        assert profile.provenance.licence
        assert ("tree" in name) == (profile.shape == "tree")
        for task in profile.laws:
            assert isinstance(
                law_of(named(name, task), Path()), NgramLaw if profile.shape == "lookup" else AcceptanceLaw
            )


@pytest.mark.parametrize("name", LOGGED)
def test_a_law_shows_what_its_log_shows(name):
    """Tokens per round of the simulated log beside the recorded one; the memory of SpS is known to overshoot."""
    law = read_profile(profile_path(name)).laws["all"]
    within = 0.035 if name.startswith("sps") else 0.015
    assert law.simulated.tokens_per_round == pytest.approx(law.observed.tokens_per_round, rel=within)
    assert law.simulated.request_sd == pytest.approx(law.observed.request_sd, rel=0.2)


@pytest.mark.parametrize("task", ["all", "mt_bench", "translation", "summarization", "qa", "math", "rag"])
def test_the_chain_profile_through_the_arrays_of_the_engine(task):
    law = read_profile(profile_path("eagle-chain-llama-3-8b")).laws[task]
    log = drawn("eagle-chain-llama-3-8b", 6, lengths_like(law), task)
    assert log.tokens_per_round == pytest.approx(law.observed.tokens_per_round, rel=0.04)


def test_tasks_differ_as_the_log_says():
    per_round = {
        task: law.observed.tokens_per_round
        for task, law in read_profile(profile_path("eagle-chain-llama-3-8b")).laws.items()
    }
    published = {"math": 2.42, "mt_bench": 2.27, "rag": 2.25, "summarization": 2.05, "translation": 1.91, "qa": 1.73}
    for task, value in published.items():
        assert per_round[task] == pytest.approx(value, abs=0.01)


def test_published_vectors_come_back():
    requests = requests_of([256] * 3000)
    runs = build_runs(requests, [named("eagle-3-llama-3.1-8b-published")], 8, 3, 0)
    seen = np.cumprod(round_log(runs, requests, 7).conditional)
    assert seen == pytest.approx([0.76, 0.54, 0.39, 0.28, 0.21, 0.15, 0.12], abs=0.004)


def test_acceptance_goes_with_output_length():
    law = law_of(named("eagle-chain-llama-3-8b"), Path())
    short, long = (law.shifts(np.zeros(1), np.array([tokens]))[0] for tokens in (40, 700))
    assert law.length_link.correlation > 0.2
    assert long > short + 0.2
    longest = law.shifts(np.zeros(2), np.array([10**6, 10**7]))
    assert longest[0] == longest[1]  # no further than any length that was measured


def test_look_ups_propose_little_or_nothing():
    lengths = np.full(500, 200)
    log = drawn("ngram-2-4-vicuna-7b", 5, lengths)
    law = read_profile(profile_path("ngram-2-4-vicuna-7b")).laws["all"]
    assert isinstance(law, LookupLaw)
    assert 0.2 < np.mean(log.drafted > 0) < 0.5
    assert np.all(log.accepted <= log.drafted)


@pytest.mark.parametrize(
    ("reference", "task", "says"),
    [
        ("eagle-chain-llama-3", None, "did you mean 'eagle-chain-llama-3-8b'"),
        ("eagle-chain-llama-3-8b", "maths", "did you mean 'math'"),
        ("nowhere.json", None, "No such file"),
        ("eagle-llama-3.1-8b-tasks-published", None, "has no task 'all'"),
    ],
)
def test_references_that_lead_nowhere(reference, task, says):
    with pytest.raises(SpecsimError, match=says):
        law_of(named(reference, task), Path())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shape": "lookup"}, "laws.all.form: chain in a lookup"),
        ({"fitted_k": 2}, "6 positions at fitted_k 2"),
        ({"laws": {}}, "laws: is too short"),
        ({"schema": "specsim-calibration/1"}, "schema"),
        ({"colour": 1}, "unknown key 'colour'"),
    ],
)
def test_broken_profiles(tmp_path, change, says):
    stored = json.loads(profile_path("eagle-chain-llama-3-8b").read_text("utf-8"))
    path = tmp_path / "own.json"
    path.write_text(json.dumps(stored | change))
    with pytest.raises(InputError) as caught:
        read_profile(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_vectors_of_unequal_length_are_refused(tmp_path):
    stored = json.loads(profile_path("eagle-chain-llama-3-8b").read_text("utf-8"))
    stored["laws"]["all"]["centre"].pop()
    path = tmp_path / "own.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(InputError, match="5 entries beside 6"):
        read_profile(path)
