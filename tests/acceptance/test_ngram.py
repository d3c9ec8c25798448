"""Look-up drafters: conservation, common random numbers, and the rates that were stated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from round_logs import requests_of

from sim.acceptance.build import build_runs
from sim.acceptance.fit_ngram import fit_ngram, lookup_log, ngram_rates
from sim.acceptance.ngram_runs import NgramLaw
from sim.acceptance.round_sample import walked
from sim.inputs.acceptance_models import Iid, Ngram

EDITS = {"match_after_match": 0.6, "match_after_none": 0.2, "conditional": [0.5, 0.7, 0.8, 0.85]}


def ngram(**changes):
    return Ngram(kind="ngram", **(EDITS | changes))


def runs_of(requests, *models, depth=5, seed=1):
    return build_runs(requests, list(models), depth, seed, 0)


@settings(max_examples=50, deadline=None)
@given(
    rates=st.lists(st.floats(0, 1), min_size=3, max_size=6),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    sigma=st.floats(0, 2),
    seed=st.integers(0, 99),
)
def test_runs_are_nested_and_among_the_drafts(rates, lengths, sigma, seed):
    law = NgramLaw((rates[0], rates[1]), tuple(rates[2:]), (1.0, 0.6, 0.5), sigma)
    sample = lookup_log(law, np.array(lengths), 4, seed, positions=500)
    assert np.all(sample.accepted <= sample.drafted)
    assert np.all(sample.drafted <= 4)


def test_every_run_shrinks_by_one_a_token():
    runs = runs_of(requests_of([400] * 20), ngram(), depth=60)
    before, after = runs.accepted[:-1].astype(int), runs.accepted[1:].astype(int)
    starts = np.isin(np.arange(1, len(runs.accepted)), runs.offsets)
    inside = (before > 0) & (before < 60) & ~starts
    assert inside.sum() > 500
    ends = np.isin(np.arange(len(runs.accepted) - 1) + before[: len(before)], runs.offsets)  # cut by an output's end
    assert np.all((after == before - 1)[inside & ~ends])
    assert np.all(runs.drafted[np.isin(np.arange(len(runs.accepted)), runs.offsets)] == 0)  # the prefill's token


def test_common_random_numbers():
    requests = requests_of([50, 80, 30])
    shallow, deep = runs_of(requests, ngram(), depth=3), runs_of(requests, ngram(), depth=9)
    assert np.array_equal(np.minimum(deep.accepted, 3), shallow.accepted)
    assert np.array_equal(deep.drafted, shallow.drafted)
    mixed = runs_of(requests_of([50, 80, 30], [0, 1, 0]), ngram(), Iid(kind="iid", alpha=0.5), depth=9)
    for row in (0, 2):
        part = slice(deep.offsets[row], deep.offsets[row] + requests.output_tokens[row])
        assert np.array_equal(deep.accepted[part], mixed.accepted[part])
    chain = slice(50, 130)
    assert np.all(mixed.drafted[chain] == 255)  # a chain beside it always proposes k


def test_a_slice_of_chains_alone_needs_no_drafts():
    assert runs_of(requests_of([5]), Iid(kind="iid", alpha=0.5)).drafted is None


@pytest.mark.parametrize("changes", [{}, {"sigma": 0.8}, {"proposed": [1.0, 0.8, 0.7, 0.7]}], ids=str)
def test_a_simulated_log_returns_what_was_stated(changes):
    model = ngram(**changes)
    requests = requests_of([256] * 2000)
    runs = runs_of(requests, model)
    log = walked(runs.accepted, runs.drafted, runs.offsets, requests.output_tokens, 4)
    rates = ngram_rates(log, 4, 4)
    assert rates.match == pytest.approx([0.6, 0.2], rel=0.02)
    assert rates.accepted == pytest.approx(model.conditional, rel=0.02)
    if model.proposed:
        assert rates.proposed == pytest.approx(model.proposed, rel=0.02)


def test_certain_rates():
    always = runs_of(requests_of([40]), ngram(match_after_match=1, match_after_none=1, conditional=[1.0]), depth=5)
    assert always.accepted[1:-5].tolist() == [5] * 34
    never = runs_of(requests_of([40]), ngram(match_after_match=0, match_after_none=0))
    assert not never.drafted.any()


def test_a_known_law_is_found_again_from_its_log():
    law = NgramLaw((0.9, 3.0), (0.8, 0.5, 0.35, 0.25), (1.0, 0.95, 0.9), 0.6)
    lengths = np.full(600, 250)
    found = fit_ngram(lookup_log(law, lengths, 3, 5), 3)
    for k in (1, 2, 5, 8):
        seen, truth = (lookup_log(one, lengths, k, 17).tokens_per_round for one in (found, law))
        assert seen == pytest.approx(truth, rel=0.06)
