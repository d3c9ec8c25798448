"""Which CUDA graph a target pass runs in, and up to how many rows it is padded.

FULL needs every row to have exactly 1 + k tokens; anything else falls to PIECEWISE; without a captured size that is
large enough, or with none that fits 1 + k, the pass runs EAGER. These cliffs are modelled as they are, never smoothed.
"""

from __future__ import annotations

from bisect import bisect_left

from ..inputs.calibration import DenseColumns, Graphs
from .step_costs import GraphMode


class GraphLaunch:
    """Captured sizes of one arm whose uniform rows have `query` tokens."""

    def __init__(self, graphs: Graphs | None, dense: DenseColumns, query: int) -> None:
        self._query = query
        self._knows_graphs = graphs is not None
        self.full_sizes = _full_sizes(graphs, query) if graphs and dense.full else []
        self.piecewise_sizes = _piecewise_sizes(graphs) if graphs and dense.piecewise else []
        modes = {GraphMode.FULL: dense.full, GraphMode.PIECEWISE: dense.piecewise, GraphMode.EAGER: dense.eager}
        self.measured = [mode for mode, column in modes.items() if column is not None]

    def launch(self, decodes: int, decode_rows: int, prompt_rows: int) -> tuple[GraphMode, int]:
        """The mode of a pass, and the rows that it really computes."""
        rows = decode_rows + prompt_rows
        if not self._knows_graphs:
            return self.measured[-1], rows
        if not prompt_rows and decode_rows == decodes * self._query:
            padded = _padded(self.full_sizes, rows)
            if padded:
                return GraphMode.FULL, padded
        padded = _padded(self.piecewise_sizes, rows)
        if padded:
            return GraphMode.PIECEWISE, padded
        return GraphMode.EAGER, rows


def _padded(sizes: list[int], rows: int) -> int:
    i = bisect_left(sizes, rows)
    return sizes[i] if i < len(sizes) else 0


def _full_sizes(graphs: Graphs, query: int) -> list[int]:
    """Row counts of uniform batches that are captured: multiples of 1 + k up to the limit."""
    limit = graphs.limit if graphs.limit is not None else max(graphs.capture_sizes)
    sizes = [size for size in graphs.capture_sizes if size <= limit]
    if graphs.unit == "requests":
        return sorted({size * query for size in sizes})
    if graphs.round_to_query:
        return sorted({rounded for size in sizes if (rounded := -(-size // query) * query) <= limit})
    return [size for size in sizes if size % query == 0]


def _piecewise_sizes(graphs: Graphs) -> list[int]:
    """Graphs between attention layers take any mix of rows; engines that count requests capture no such ones."""
    if graphs.unit == "requests":
        return []
    limit = graphs.limit if graphs.limit is not None else max(graphs.capture_sizes)
    return [size for size in graphs.capture_sizes if size <= limit]
