"""Tables of known functions: exact at the grid, close between, jumping where the device jumps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_device import (
    BATCH,
    CONTEXT,
    LIMIT,
    QUERY,
    attention_ms,
    dense_ms,
    first_pass_ms,
    head_ms,
    kv_update_ms,
    narrow_pass_ms,
    prefill_attention_ms,
    sampling_ms,
    table_costs,
)

from sim.cost.step_costs import GraphMode, StepShape
from sim.cost.table_costs import TableStepCosts, roofline_ms


def compiled(drafts=3, **changes):
    return TableStepCosts(table_costs(**changes), [drafts])


def decode(costs, batch, drafts, context):
    return costs.terms(StepShape(batch, batch * drafts, batch * context, [], 0, 0), drafts)


def padded(rows, query):
    """The next multiple of 1 + k to which the ladder 1, 2, 4, 8, 16, … leads."""
    ladder = sorted({-(-size // query) * query for size in [1, 2, 4, *range(8, LIMIT + 1, 8)]})
    return next(size for size in ladder if size >= rows and size <= LIMIT)


@pytest.mark.parametrize("query", QUERY)
@pytest.mark.parametrize("batch", BATCH)
def test_grid_points_come_back_exactly(batch, query):
    drafts = query - 1
    for context in CONTEXT:
        terms = decode(compiled(drafts), batch, drafts, context)
        rows = batch * query
        size, mode = (padded(rows, query), "full") if rows <= LIMIT // query * query else (rows, "eager")
        if mode == "eager" and rows <= LIMIT:
            size, mode = LIMIT, "piecewise"
        expected = dense_ms(size, mode) + head_ms(rows) + attention_ms(batch, query, context)
        assert terms.target == pytest.approx(expected, rel=1e-12)
        assert terms.target_decode == terms.target
        assert terms.sampling == pytest.approx(sampling_ms(batch, query))
        assert terms.kv_update == pytest.approx(kv_update_ms(rows))
        # The first pass reads the contexts that a narrow one reads, beyond the smallest, at which it was measured.
        narrow = drafts * narrow_pass_ms(batch, context) - narrow_pass_ms(batch, CONTEXT[0])
        draft = first_pass_ms(rows) + narrow if drafts else 0.0
        assert terms.draft == pytest.approx(draft)
        assert not terms.extrapolated
        assert terms.graph == GraphMode[mode.upper()]


@given(st.integers(1, 128), st.integers(0, 7), st.integers(16, 8192))
def test_between_the_points_it_is_within_one_percent(batch, drafts, context):
    costs = compiled(drafts)
    rows = batch * (1 + drafts)
    line = costs.attention.line(batch, rows)
    assert line.at(context) == pytest.approx(attention_ms(batch, 1 + drafts, context), rel=0.01)
    assert costs.head.at(rows) == pytest.approx(head_ms(rows), rel=0.01)
    assert costs.dense[GraphMode.FULL].at(rows) == pytest.approx(dense_ms(rows), rel=0.01)


@given(st.integers(1, 4096), st.integers(0, 16384))
def test_causal_prefill_attention_is_within_one_percent(chunk, start):
    assert compiled().prefill.of(chunk, start) == pytest.approx(prefill_attention_ms(chunk, start), rel=0.01)


@pytest.mark.parametrize("term", ["head", "kv_update", "host"])
def test_any_term_beyond_its_table_counts(term):
    short = {"rows": [1, 2], "ms": [0.1, 0.2]}
    assert not decode(compiled(**{term: short}), 1, 0, 100).extrapolated
    far = compiled(**{term: short})
    assert decode(far, 8, 0, 100).extrapolated
    assert far.rounds(8, 0, np.array([800.0]), 0).extrapolated.all()


def test_sampling_beyond_its_grid_counts():
    small = {"batch": [1, 4], "query": [1, 2], "ms": [[0.1, 0.2], [0.3, 0.4]]}
    assert not decode(compiled(1, sampling=small), 4, 1, 100).extrapolated
    assert decode(compiled(1, sampling=small), 5, 1, 100).extrapolated
    assert decode(compiled(2, sampling=small), 4, 2, 100).extrapolated


def test_an_unfinished_chunk_has_no_logits_and_no_parallel_draft():
    costs = compiled()
    assert costs.chunk_ms(256, 0, True) - costs.chunk_ms(256, 0, False) == pytest.approx(head_ms(1))
    alone = costs.terms(StepShape(0, 0, 0, [(256, 0)], 0, 0), 1)
    assert alone.target == pytest.approx(costs.chunk_ms(256, 0, False))
    block = {"kind": "parallel", "block": 8, "one_pass": {"rows": [8, 1024], "ms": [1.0, 3.0]}}
    assert compiled(draft=block).terms(StepShape(0, 0, 0, [(256, 0)], 0, 0), 1).draft == 0


@given(st.integers(1, 300), st.integers(0, 7), st.lists(st.integers(1, 12000), min_size=1, max_size=6))
def test_many_rounds_cost_what_single_ones_do(batch, drafts, contexts):
    costs = compiled(drafts)
    totals = np.array([batch * context for context in contexts], dtype=np.float64)
    table = costs.rounds(batch, drafts, totals, drafts)
    for i, context in enumerate(contexts):
        terms = decode(costs, batch, drafts, context)
        np.testing.assert_allclose(table.phases[:, i], terms[:6], rtol=1e-12)
        assert table.extrapolated[i] == terms.extrapolated
        assert table.graph == terms.graph


def best_k(ms_of_rows, batch=32, alpha=0.8):
    tokens = np.cumsum(alpha ** np.arange(7))
    return int(np.argmax([tokens[k] / ms_of_rows(batch * (1 + k)) for k in range(7)]))


def test_a_smooth_fit_of_the_same_points_picks_a_worse_k_at_a_tile_edge():
    exact = compiled().dense[GraphMode.FULL].at
    rows = np.array([batch * (1 + k) for batch in BATCH for k in range(7) if batch * (1 + k) <= LIMIT])
    slope, fixed = np.polyfit(rows, [exact(row) for row in rows], 1)
    chosen, smooth = best_k(exact), best_k(lambda row: fixed + slope * row)
    assert chosen != smooth
    tokens = np.cumsum(0.8 ** np.arange(7))
    assert tokens[chosen] / exact(32 * (1 + chosen)) > tokens[smooth] / exact(32 * (1 + smooth))


def test_stairs_jump_at_the_tile_edge():
    full = compiled().dense[GraphMode.FULL]
    assert full.at(65) - full.at(64) == pytest.approx(0.9)
    assert full.at(128) == full.at(65)


def test_a_prompt_chunk_or_a_ragged_draft_falls_to_piecewise():
    costs = compiled()
    assert costs.terms(StepShape(8, 24, 800, [], 0, 0), 3).graph == GraphMode.FULL
    assert costs.terms(StepShape(8, 23, 800, [], 0, 0), 3).graph == GraphMode.PIECEWISE
    mixed = costs.terms(StepShape(8, 24, 800, [(100, 0)], 1, 100), 3)
    assert mixed.graph == GraphMode.PIECEWISE
    expected = dense_ms(136, "piecewise") + head_ms(33) + attention_ms(8, 4, 100) + prefill_attention_ms(100, 0)
    assert mixed.target == pytest.approx(expected, rel=0.01)
    assert mixed.target_decode == pytest.approx(dense_ms(32) + head_ms(32) + attention_ms(8, 4, 100))


def test_above_the_capture_limit_the_pass_is_eager():
    costs = compiled()
    inside, above = decode(costs, 64, 3, 100), decode(costs, 65, 3, 100)
    assert (inside.graph, above.graph) == (GraphMode.FULL, GraphMode.EAGER)
    assert above.target - inside.target > 1.5


def test_sizes_that_miss_the_query_leave_uniform_batches_without_a_full_graph():
    # 6 requests of 7 tokens are 42 rows; a ladder cut at 40 has no graph for them.
    graphs = {"capture_sizes": [1, 2, 4, 8, 16, 24, 32, 40], "limit": 40}
    assert decode(compiled(6, graphs=graphs), 6, 6, 100).graph == GraphMode.EAGER
    whole = graphs | {"capture_sizes": [*graphs["capture_sizes"], 42], "limit": 42}
    assert decode(compiled(6, graphs=whole), 6, 6, 100).graph == GraphMode.FULL
    unrounded = {"capture_sizes": [8, 16, 32, 64], "round_to_query": False}
    assert decode(compiled(4, graphs=unrounded), 4, 4, 100).graph == GraphMode.PIECEWISE
    assert decode(compiled(3, graphs=unrounded), 4, 3, 100).graph == GraphMode.FULL


def test_sizes_in_requests_do_not_depend_on_the_query():
    graphs = {"capture_sizes": [1, 2, 4, 8], "unit": "requests"}
    costs = compiled(5, graphs=graphs)
    assert decode(costs, 7, 5, 100).graph == GraphMode.FULL
    assert decode(costs, 9, 5, 100).graph == GraphMode.EAGER


def test_beyond_the_table_the_boundary_utilisation_holds():
    costs = compiled()
    roofline = table_costs().roofline
    eager = costs.dense[GraphMode.EAGER]
    scale = roofline_ms(roofline, 8192) / roofline_ms(roofline, 4096)
    assert eager.at(8192) == pytest.approx(dense_ms(4096, "eager") * scale)
    assert decode(costs, 2048, 3, 100).extrapolated
    far = decode(costs, 1, 3, 16384)
    assert far.extrapolated
    assert costs.attention.line(1, 4).at(16384) == pytest.approx(2 * attention_ms(1, 4, 8192))


def test_parallel_and_look_up_drafters():
    block = {"kind": "parallel", "block": 8, "one_pass": {"rows": [8, 1024], "ms": [1.0, 3.0]}}
    assert decode(compiled(draft=block), 1, 3, 100).draft == 1.0
    assert decode(compiled(draft=block), 128, 3, 100).draft == 3.0
    lookup = {"kind": "lookup", "fixed_ms": 0.2, "per_request_us": 50}
    assert decode(compiled(draft=lookup), 10, 3, 100).draft == pytest.approx(0.7)


def test_without_graphs_the_measured_column_is_used_as_it_is():
    eager_only = {"dense": {"eager": {"rows": [1, 100], "ms": [1.0, 2.0]}}, "graphs": None}
    terms = decode(compiled(**eager_only), 25, 3, 100)
    assert terms.graph == GraphMode.NONE
    assert terms.target == pytest.approx(2.0 + head_ms(100) + attention_ms(25, 4, 100), rel=0.01)
