"""Whole rounds: measured cells, what lies between, and a published sweep with one draft length left out in turn."""

import json
from pathlib import Path

import numpy as np
import pytest

from sim.cost.round_costs import RoundStepCosts
from sim.cost.step_costs import StepShape
from sim.inputs.calibration import RoundCosts

# vllm-project/vllm#20780: Llama-3.1-8B at batch 1 on MT-Bench, acceptance length and TPOT by draft length 2 to 7.
SWEEP = {
    "eagle": ([2.10, 2.29, 2.39, 2.43, 2.45, 2.47], [4.37, 4.29, 4.48, 4.71, 4.94, 5.20]),
    "eagle3": ([2.36, 2.79, 3.08, 3.32, 3.46, 3.54], [4.32, 4.09, 4.05, 4.13, 4.20, 4.29]),
}
DRAFTS = [2, 3, 4, 5, 6, 7]
VANILLA_TPOT_MS = 7.07  # a round without drafts commits one token
SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases" / "published.jsonl"


def rounds(drafts, ms, batch=(1,), **changes):
    content = {"form": "rounds", "batch": list(batch), "drafts": list(drafts), "ms": ms} | changes
    return RoundStepCosts(RoundCosts.model_validate(content))


def test_the_sweep_is_the_published_one():
    if not SHARED.exists():
        pytest.skip("the published cases are not beside the repository")
    rows = [json.loads(line) for line in SHARED.read_text().splitlines()]
    for method, name in (("eagle", "eagle1"), ("eagle3", "eagle3")):
        found = {row["k"]: row["measured"] for row in rows if row["id"].startswith(f"i20780_{name}_k")}
        assert [found[k]["AL"] for k in DRAFTS] == SWEEP[method][0]
        assert [found[k]["TPOT_ms"] for k in DRAFTS] == SWEEP[method][1]


@pytest.mark.parametrize("method", SWEEP)
@pytest.mark.parametrize("left_out", DRAFTS)
def test_a_left_out_draft_length_is_predicted_and_still_well_chosen(method, left_out):
    lengths, tpot = (np.array(values) for values in SWEEP[method])
    measured = lengths * tpot
    kept = [i for i, k in enumerate(DRAFTS) if k != left_out]
    costs = rounds([0, *(DRAFTS[i] for i in kept)], [[VANILLA_TPOT_MS, *(measured[i] for i in kept)]])
    predicted = np.array([costs.round_ms(1, float(k))[0] for k in DRAFTS])
    i = DRAFTS.index(left_out)
    assert predicted[i] == pytest.approx(measured[i], rel=0.03)
    best = int(np.argmin(predicted / lengths))
    assert tpot[best] <= 1.015 * tpot.min()


def test_missing_cells_follow_their_neighbours_and_edges_are_extrapolated():
    costs = rounds([0, 1, 3, 5], [[5.0, 6.0, 8.0, 10.0], [7.0, 9.0, 12.0, None]], batch=(1, 9))
    assert costs.round_ms(1, 1.0) == (6.0, False)
    assert costs.round_ms(1, 2.0) == (7.0, False)
    assert costs.round_ms(1, 0.5) == (5.5, False)
    assert costs.round_ms(5, 1.0) == (7.5, False)
    assert costs.round_ms(9, 5.0) == (pytest.approx(15.0), True)
    assert costs.round_ms(2, 5.0)[1]  # rests on the extrapolated cell of batch 9 too
    assert costs.round_ms(17, 0.0) == (9.0, True)


def test_no_drafts_are_a_point_of_their_own():
    # The first draft brings the drafter, so the way from 0 to the shortest measured draft is not a straight line.
    costs = rounds([0, 3, 4, 5], [[5.0, 11.0, 12.0, 13.0]])
    assert costs.round_ms(1, 0.0) == (5.0, False)
    assert costs.round_ms(1, 2.0) == (pytest.approx(10.0), True)


def test_prompt_rows_come_on_top():
    costs = rounds([0, 3], [[5.0, 8.0]], prefill_per_token_us=20.0)
    terms = costs.terms(StepShape(1, 3, 100, [(1000, 0)], 1, 1000), 3)
    assert (terms.target, terms.target_decode) == (28.0, 8.0)
    assert costs.terms(StepShape(0, 0, 0, [(1000, 0)], 1, 1000), 3).target == 25.0
    assert costs.chunk_ms(1000, 0, True) == 25.0
