import numpy as np
import pytest

from sim.analysis.marginal import marginal_rows


def step_ms(k):
    return 10.0 + 4.0 * k + (6.0 if k else 0.0)  # the first draft token brings the drafter's fixed cost


def test_rows_on_paper():
    rows = marginal_rows(np.array([80, 60, 30]), np.array([100, 180, 240, 270]), 100, step_ms, 3)
    assert [row["position"] for row in rows] == [1, 2, 3]
    assert [row["p_committed"] for row in rows] == pytest.approx([0.8, 0.6, 0.3])
    assert [row["adds_ms"] for row in rows] == pytest.approx([10, 4, 4])
    # T_0 / A_0 = 10 / 1, T_1 / A_1 = 20 / 1.8, T_2 / A_2 = 24 / 2.4
    assert [row["saves_ms"] for row in rows] == pytest.approx([8.0, 0.6 * 20 / 1.8, 3.0])
    assert [row["pays"] for row in rows] == [False, True, False]


def test_a_position_pays_exactly_if_it_lowers_time_per_token():
    committed_at = np.array([80, 60, 30, 10])
    delivered_at = np.cumsum([100, *committed_at])
    for row in marginal_rows(committed_at, delivered_at, 100, step_ms, 4):
        k = row["position"]
        per_token = [step_ms(i) / (1 + committed_at[:i].sum() / 100) for i in (k - 1, k)]
        assert row["pays"] == (per_token[1] < per_token[0])


def test_no_positions_or_rounds_no_rows():
    assert marginal_rows(np.array([0]), np.array([5, 5]), 5, step_ms, 0) == []
    assert marginal_rows(np.array([0, 0]), np.array([0, 0, 0]), 0, step_ms, 2) == []
