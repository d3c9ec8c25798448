"""Rejection sampling at temperature 1 reproduces the target's distribution."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from profiler.sampling import rejection

VOCABULARY = 7
ROUNDS = 40_000


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def round_of(seed, k, probabilistic, temperature=1.0):
    """Draws of `ROUNDS` rounds of the same logits. Every position has a distribution of its own."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(k + 1, VOCABULARY, generator=generator)
    q = (1.5 * torch.randn(k, VOCABULARY, generator=generator)).softmax(-1)
    if probabilistic:
        drafts = torch.stack([torch.multinomial(row, ROUNDS, replacement=True, generator=generator) for row in q], 1)
        probabilities = q.expand(ROUNDS, k, VOCABULARY)
    else:
        drafts, probabilities = q.argmax(-1).expand(ROUNDS, k), None
    accepted, token = rejection(
        logits.expand(ROUNDS, k + 1, VOCABULARY),
        drafts,
        torch.rand(ROUNDS, k, generator=generator),
        torch.empty(ROUNDS, VOCABULARY).exponential_(generator=generator),
        probabilities,
        temperature,
    )
    tokens = torch.cat([drafts, token[:, None]], dim=1).scatter(1, accepted[:, None], token[:, None])
    return (logits / temperature).softmax(-1).double().numpy(), accepted.numpy(), tokens.numpy()


def p_value(counts, probabilities):
    expected = probabilities * counts.sum()
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


@pytest.mark.parametrize("probabilistic", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_committed_position_has_the_targets_distribution(seed, probabilistic):
    target, accepted, tokens = round_of(seed, 3, probabilistic)
    for position in range(4):
        reached = tokens[accepted >= position, position]
        assert p_value(np.bincount(reached, minlength=VOCABULARY), target[position]) > 1e-3


def test_a_temperature_counts():
    target, _, tokens = round_of(4, 2, True, temperature=0.5)
    assert p_value(np.bincount(tokens[:, 0], minlength=VOCABULARY), target[0]) > 1e-3
    other, _, _ = round_of(4, 2, True, temperature=1.0)
    assert p_value(np.bincount(tokens[:, 0], minlength=VOCABULARY), other[0]) < 1e-6


def test_without_drafts_it_samples_the_target():
    target, accepted, tokens = round_of(5, 0, False)
    assert (accepted == 0).all()
    assert p_value(np.bincount(tokens[:, 0], minlength=VOCABULARY), target[0]) > 1e-3


def test_acceptance_is_the_overlap_of_the_distributions():
    target, accepted, _ = round_of(6, 1, True)
    generator = torch.Generator().manual_seed(6)
    torch.randn(2, VOCABULARY, generator=generator)
    q = (1.5 * torch.randn(1, VOCABULARY, generator=generator)).softmax(-1).double().numpy()[0]
    overlap = np.minimum(target[0], q).sum()
    assert accepted.mean() == pytest.approx(overlap, abs=4 * np.sqrt(overlap * (1 - overlap) / ROUNDS))
