"""SGLang's draft-extend: the first draft pass takes a row of each request, prompts are prefilled whole."""

import numpy as np
import pytest
from known_device import CONTEXT, first_pass_ms, narrow_pass_ms, table_costs

from sim.cost.affine_costs import AffineStepCosts
from sim.cost.step_costs import StepShape, round_shape
from sim.cost.table_costs import TableStepCosts
from sim.inputs.calibration import AffineCosts

AFFINE = AffineCosts(target_fixed_ms=10, draft_fixed_ms=1, draft_per_token_us=100, draft_per_kv_token_ns=1000)


def compiled(*, draft_extend):
    return [
        AffineStepCosts(AFFINE, draft_extend=draft_extend),
        TableStepCosts(table_costs(), [3], draft_extend=draft_extend),
    ]


def test_a_round_of_the_affine_form():
    terms = AffineStepCosts(AFFINE, draft_extend=True).terms(round_shape(4, 3, 2000), 3)
    assert terms.draft == pytest.approx(3 * (1 + 0.1 * 4 + 0.001 * 2000))


def test_a_round_of_tables():
    costs = TableStepCosts(table_costs(), [3], draft_extend=True)
    batch, context = 8, CONTEXT[1]
    terms = costs.terms(round_shape(batch, 3, batch * context), 3)
    narrow = 3 * narrow_pass_ms(batch, context) - narrow_pass_ms(batch, CONTEXT[0])
    assert terms.draft == pytest.approx(first_pass_ms(batch) + narrow)


@pytest.mark.parametrize("form", [0, 1], ids=["affine", "tables"])
def test_prompts_cost_the_same_in_both_and_only_drafting_differs(form):
    extend, whole = compiled(draft_extend=True)[form], compiled(draft_extend=False)[form]
    prefill = StepShape(0, 0, 0, [(200, 0), (100, 64)], 1, 200)
    assert extend.terms(prefill, 1) == whole.terms(prefill, 1)
    mixed = StepShape(4, 12, 4000, [(200, 0)], 1, 200)
    one, other = extend.terms(mixed, 3), whole.terms(mixed, 3)
    assert one._replace(draft=0.0) == other._replace(draft=0.0)
    assert one.draft < other.draft


@pytest.mark.parametrize("form", [0, 1], ids=["affine", "tables"])
def test_many_rounds_at_once_cost_what_they_cost_one_by_one(form):
    costs = compiled(draft_extend=True)[form]
    contexts = np.array([2000.0, 2400.0, 9000.0])
    table = costs.rounds(4, 3, contexts, 3)
    for column, context in enumerate(contexts):
        assert table.phases[:, column].tolist() == list(costs.terms(round_shape(4, 3, int(context)), 3)[:6])
