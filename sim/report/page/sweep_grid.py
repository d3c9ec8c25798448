"""A sweep as a grid: its axes, which of them a figure is drawn over, and what a cell gains over the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...analysis.comparison import BETTER
from .cases import Cases, Choice, texts
from .result_arms import compared_part

DRAFT_PATHS = ("num_speculative_tokens",)
LOAD_PATHS = ("concurrency", "rate", "scale")
LABELS = {"num_speculative_tokens": "draft length k", "concurrency": "concurrency", "rate": "requests/s"}
GAINS = (
    ("output_throughput", "output throughput"),
    ("mean_tpot_ms", "TPOT mean"),
    ("p95_tpot_ms", "TPOT p95"),
    ("mean_ttft_ms", "TTFT mean"),
    ("p95_ttft_ms", "TTFT p95"),
    ("mean_e2el_ms", "E2E mean"),
    ("p95_e2el_ms", "E2E p95"),
    ("request_goodput", "goodput"),
    ("usd_per_successful_task", "cost per success"),
)


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times better than the baseline, with its interval: above 1 is better, whatever the metric."""

    ratio: float | None
    interval: tuple[float, float] | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the grid. path: in the scenario; label: as people say it."""

    path: str
    label: str
    values: Sequence[Any]

    @property
    def texts(self) -> list[str]:
        """Its values as options to pick."""
        return texts(self.values)


@dataclass(frozen=True, slots=True)
class Grid:
    """A sweep. across, lines: the axes along and between the lines of a figure, as indices; one axis has no `lines`.

    cells: by the index of their value on each axis.
    """

    axes: Sequence[Axis]
    across: int
    lines: int | None
    cells: Mapping[Choice, dict[str, Any]]

    @property
    def keys(self) -> tuple[str, ...]:
        """The controls that pick a cell."""
        return tuple(f"axis-{index}" for index in range(len(self.axes)))

    @property
    def others(self) -> list[int]:
        """Axes that a figure is not drawn over: the reader picks their values."""
        return [index for index in range(len(self.axes)) if index not in (self.across, self.lines)]

    def line_values(self) -> int:
        """How many lines there are."""
        return 1 if self.lines is None else len(self.axes[self.lines].values)

    def cell(self, across: int, line: int, others: Choice) -> dict[str, Any] | None:
        """The cell at a place of a figure."""
        at = dict(zip(self.others, others, strict=True)) | {self.across: across}
        if self.lines is not None:
            at[self.lines] = line
        return self.cells.get(tuple(at[index] for index in range(len(self.axes))))

    def other_choices(self) -> Iterator[Choice]:
        """Every choice of values on the other axes."""
        return product(*(range(len(self.axes[index].values)) for index in self.others))

    def cases(self, scenario: dict[str, Any]) -> Cases:
        """Every cell as a result."""
        return Cases(
            self.keys,
            {
                at: {"arms": cell["arms"], "comparison": cell["comparison"], "scenario": scenario}
                for at, cell in self.cells.items()
            },
        )


def grid_of(document: dict[str, Any]) -> Grid:
    """The grid of a sweep's document."""
    axes = [Axis(one["path"], _label(one["path"]), one["values"]) for one in document["axes"]]
    loads = [index for index, one in enumerate(axes) if _last(one.path) in LOAD_PATHS]
    drafts = [index for index, one in enumerate(axes) if _last(one.path) in DRAFT_PATHS]
    across = (loads or drafts or [len(axes) - 1])[0]
    rest = [index for index in [*drafts, *range(len(axes))] if index != across]
    cells = {tuple(one.values.index(cell["values"][one.path]) for one in axes): cell for cell in document["cells"]}
    return Grid(axes, across, rest[0] if rest else None, cells)


def gain(cell: dict[str, Any], arm: str, scope: str | None, metric: str) -> Gain:
    """What an arm gains by a metric."""
    compared = cell["comparison"].get(arm)
    if compared is None or (scope is not None and scope not in compared.get("slices", {})):
        return Gain(None, None, "not_tested")
    entry = compared_part(compared, scope).get(metric) or {}
    ratio, low, high = entry.get("ratio"), entry.get("low"), entry.get("high")
    verdict = entry.get("verdict", "not_tested")
    if not ratio or ratio <= 0:
        return Gain(None, None, verdict)
    interval = None if low is None or high is None else (max(low, ratio / 100), high)
    if BETTER.get(metric) == "higher":
        return Gain(ratio, interval, verdict)
    return Gain(1 / ratio, None if interval is None else (1 / interval[1], 1 / interval[0]), verdict)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _label(path: str) -> str:
    return LABELS.get(_last(path), path)
