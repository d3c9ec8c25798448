"""Overload is reported just above the stability limit and not just below it: the engine itself against theory.

Steps take a + b * rows, outputs are geometric with mean m: state-dependent processor sharing, stable if and only if
lambda * (rows of a request) * b < 1. Without speculation a request takes m rows, so that the limit is lambda b = q with
q = 1 / m, the chance that a request ends in a step; with it, q = sum of p_n (1 - (1 - 1/m)^n) over the n tokens that a
round commits, and a round takes 1 + k rows.
"""

import json
from pathlib import Path

import pytest

from sim.acceptance.build import build_runs, no_acceptance
from sim.analysis.overload import judge_overload, overload_evidence
from sim.answers.plan import plan_run
from sim.engine.loop import simulate
from sim.inputs.load import load_scenario
from sim.workload.build import build_requests

A_MS, B_MS, MEAN_TOKENS = 2.0, 0.2, 20
ALPHA, DRAFTS = 0.7, 3
SEEDS = {0: range(20), DRAFTS: range(10)}


def chance_to_end_in_a_round():
    committed = [ALPHA ** (n - 1) * (1 - ALPHA) for n in range(1, DRAFTS + 1)] + [ALPHA**DRAFTS]
    return sum(p * (1 - (1 - 1 / MEAN_TOKENS) ** n) for n, p in enumerate(committed, start=1))


def limit_per_ms(drafts):
    """Requests per ms at which the rows alone fill the time; the first token comes from the one row of its prompt."""
    if not drafts:
        return 1 / (MEAN_TOKENS * B_MS)
    rounds = (1 - 1 / MEAN_TOKENS) / chance_to_end_in_a_round()
    return 1 / (B_MS * (1 + (1 + drafts) * rounds))


def engine_records(folder: Path, rate_per_ms, requests, seed, drafts=0, prompt=1, arrivals=None, **engine):
    scenario = {
        "calibration": {"kind": "affine", "target_fixed_ms": A_MS, "target_per_token_us": 1000 * B_MS},
        "workload": {
            "requests": requests,
            "arrivals": arrivals or {"kind": "poisson", "rate": 1000 * rate_per_ms},
            "slices": [
                {
                    "name": "all",
                    "prompt_tokens": prompt,
                    "output_tokens": {"kind": "geometric", "mean": MEAN_TOKENS, "max": 1000},
                    "acceptance": {"kind": "iid", "alpha": ALPHA},
                }
            ],
        },
        "speculation": {"method": "eagle", "num_speculative_tokens": max(drafts, 1)},
        "engine": {"max_num_seqs": 100_000, "max_num_batched_tokens": 1_000_000, **engine},
        "run": {"seed": seed},
    }
    path = folder / "scenario.json"
    path.write_text(json.dumps(scenario))
    loaded = load_scenario(path)
    arm = plan_run(loaded).arms[1 if drafts else 0]
    drawn = build_requests(loaded.scenario.workload, folder, seed, 0)
    models = [part.acceptance for part in arm.slices]
    runs = build_runs(drawn, models, drafts + 1, seed, 0) if drafts else no_acceptance(drawn)
    return simulate(drawn, runs, arm.settings, arm.costs)


def overload(*arguments, **options):
    return judge_overload([overload_evidence(engine_records(*arguments, **options))])


def test_the_limit_with_speculation_is_that_of_rounds():
    """To a few percent lambda b (1 + k) = q; the exact limit knows that the first token costs one row only."""
    assert limit_per_ms(DRAFTS) == pytest.approx(chance_to_end_in_a_round() / (B_MS * (1 + DRAFTS)), rel=0.03)
    assert limit_per_ms(0) == pytest.approx(1 / MEAN_TOKENS / B_MS)


@pytest.mark.parametrize("drafts", [0, DRAFTS])
@pytest.mark.parametrize(("load", "overloaded"), [(0.97, False), (1.03, True)])
def test_three_percent_around_the_limit(load, overloaded, drafts, tmp_path):
    """20,000 geometric requests offer 1 % more or less work than they should: 3 % is three standard errors."""
    rate = load * limit_per_ms(drafts)
    found = [overload(tmp_path, rate, 20_000, seed, drafts).detected for seed in SEEDS[drafts]]
    assert found == [overloaded] * len(found)


@pytest.mark.parametrize(("load", "expected"), [(0.92, 0), (1.08, 4)])
def test_the_limit_of_a_full_batch(load, expected, tmp_path):
    """16 at a time, whatever waits: 16 tokens leave every a + 16 b."""
    limit = 16 / (A_MS + 16 * B_MS) / MEAN_TOKENS
    found = [overload(tmp_path, load * limit, 4000, seed, max_num_seqs=16) for seed in range(4)]
    assert sum(one.detected for one in found) == expected
    carried = [one.carried_request_rate for one in found if one.detected]
    assert carried == pytest.approx([1000 * limit] * expected, rel=0.04)


@pytest.mark.parametrize("drafts", [0, DRAFTS])
@pytest.mark.parametrize(("load", "expected"), [(0.9, 0), (1.1, 3)])
def test_the_limit_of_kv_blocks(load, expected, drafts, tmp_path):
    """No theory with preemptions: the limit is what the engine commits while all requests wait from the start."""
    engine = {"prompt": 60, "drafts": drafts, "num_gpu_blocks": 121, "num_gpu_blocks_baseline": 121}
    full = engine_records(tmp_path, 1.0, 2000, 99, arrivals={"kind": "at_once"}, **engine)
    waits = full.steps[0].waiting > 0
    tokens_per_ms = full.steps[0].committed_tokens[waits].sum() / full.steps[0].duration_ms[waits].sum()
    limit = tokens_per_ms / full.requests.output_tokens.mean()
    found = [overload(tmp_path, load * limit, 2500, seed, **engine) for seed in range(3)]
    assert sum(one.detected for one in found) == expected
    carried = [one.carried_request_rate for one in found if one.detected]
    assert carried == pytest.approx([1000 * limit] * expected, rel=0.04)
