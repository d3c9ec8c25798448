"""The next stair of the dense part: up to how many rows a step costs about what it costs now, and what comes then."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ..cost.compile import compile_costs
from ..cost.step_costs import GraphMode
from ..cost.table_costs import TableStepCosts
from ..inputs.calibration import Calibration, TableCosts
from ..inputs.numbers import MAX_SPECULATIVE_TOKENS

CAPTURED_RISE = 1.02  # of a captured size over the one that this step is padded to; less is noise
CURVE_RISE = 1.05  # from one measured point to the next, and by more than the rows grow: a tile edge, not more work


class Stair(NamedTuple):
    """The last rows before a stair, the dense part's cost before and after it, and the graph mode after it.

    before_ms: at a captured size, the cost of this step; in eager mode, of the last rows before a tile edge.
    more_requests, more_drafts: how many more of each, alone, fit before it.
    """

    last_rows: int
    before_ms: float
    after_ms: float
    graph_after: str
    more_requests: int
    more_drafts: int

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return self._asdict()


def next_stair(calibration: Calibration, batch: int, drafts: int) -> Stair | None:
    """The next stair above a step of `batch` requests with `drafts` drafts each; None where the costs have none."""
    costs = compile_costs(calibration, drafts)
    if not isinstance(costs, TableStepCosts) or not isinstance(calibration.costs, TableCosts):
        return None
    query = 1 + drafts
    mode, padded = costs.graphs.launch(batch, batch * query, 0)
    sizes = captured_sizes(costs, mode)
    if not sizes:
        found = _tile_edge(costs, calibration.costs, mode, padded)
        return found and found._replace(
            more_requests=found.last_rows // query - batch, more_drafts=found.last_rows // batch - query
        )
    found = _captured_stair(costs, mode, [size for size in sizes if size >= padded], query)
    return found and found._replace(
        more_requests=found.last_rows // query - batch,
        more_drafts=_drafts_that_fit(calibration, batch, drafts, CAPTURED_RISE * found.before_ms),
    )


def captured_sizes(costs: TableStepCosts, mode: GraphMode) -> list[int]:
    """Row counts that a mode pads to; [] where it does not pad."""
    return {GraphMode.FULL: costs.graphs.full_sizes, GraphMode.PIECEWISE: costs.graphs.piecewise_sizes}.get(mode, [])


def _captured_stair(costs: TableStepCosts, mode: GraphMode, sizes: list[int], query: int) -> Stair | None:
    """Against the size of this step, not step by step: many small rises make a large one. sizes[0]: this step's."""
    dense, now_ms = costs.dense[mode], costs.dense[mode].at(sizes[0])
    for last, larger in pairwise(sizes):
        if dense.at(larger) > CAPTURED_RISE * now_ms:
            return Stair(last, now_ms, dense.at(larger), mode.name.lower(), 0, 0)
    requests = sizes[-1] // query + 1  # one more than any graph of this mode takes
    mode_after, padded = costs.graphs.launch(requests, requests * query, 0)
    return Stair(sizes[-1], now_ms, costs.dense[mode_after].at(padded), mode_after.name.lower(), 0, 0)


def _tile_edge(costs: TableStepCosts, table: TableCosts, mode: GraphMode, rows: int) -> Stair | None:
    curve = getattr(table.dense, mode.name.lower())
    dense = costs.dense[mode]
    for last, larger in pairwise(row for row in curve.rows if row >= rows):
        rise = dense.at(larger) / dense.at(last)
        if rise > max(CURVE_RISE, larger / last):
            return Stair(last, dense.at(last), dense.at(larger), mode.name.lower(), 0, 0)
    return None


def _drafts_that_fit(calibration: Calibration, batch: int, drafts: int, most_ms: float) -> int:
    """Another draft length has other captured sizes, so each is asked."""
    more = 0
    for longer in range(drafts + 1, MAX_SPECULATIVE_TOKENS + 1):
        costs = compile_costs(calibration, longer)
        assert isinstance(costs, TableStepCosts)
        mode, padded = costs.graphs.launch(batch, batch * (1 + longer), 0)
        if costs.dense[mode].at(padded) > most_ms:
            break
        more += 1
    return more
