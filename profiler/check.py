"""End to end: a live speculative loop as it was timed, against the simulator fed with the same accepted tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sim.inputs.calibration import TableCosts

from .folds import Fold, fold_of
from .pricing import compiled, round_ms
from .store import Points

ALPHAS = (0.5, 0.7, 0.9)


class LiveCheck(NamedTuple):
    """One loop. Times are means over its steps, disturbed ones (twice the median) left out on both sides."""

    name: str
    steps: int
    committed_per_round: float
    measured_ms: float
    predicted_ms: float
    step_error_percent: float

    @property
    def error_percent(self) -> float:
        """Signed error of the mean step."""
        return 100 * (self.predicted_ms / self.measured_ms - 1)


class Choice(NamedTuple):
    """The best k as measured and as predicted at one load, and what the predicted one loses in tokens per ms."""

    batch: int
    context: int
    acceptance: float
    measured_k: int
    predicted_k: int
    regret_percent: float
    kendall_tau: float


def live_checks(points: Points, costs: TableCosts) -> list[LiveCheck]:
    """Every live loop of a results folder against tables of the depth that was measured."""
    return [_check(row.point.name, *row.point.group[:2], row.extra["steps"], costs) for row in points.ok("live")]


def live_fold(points: Points, costs: TableCosts) -> Fold | None:
    """The error of the mean step over all live loops."""
    errors = [(check.name, check.error_percent / 100) for check in live_checks(points, costs)]
    return fold_of(errors) if errors else None


def _check(name: str, batch: int, query: int, steps: list[list[float]], costs: TableCosts) -> LiveCheck:
    tables = compiled(costs, query - 1)
    measured = np.array([step[0] for step in steps])
    predicted = np.array([round_ms(tables, batch, query - 1, int(step[1])) for step in steps])
    calm = measured < 2 * np.median(measured)
    committed = float(np.mean([step[2] for step in steps])) / batch
    error = 100 * float(np.median(np.abs(predicted[calm] / measured[calm] - 1)))
    return LiveCheck(name, len(steps), committed, float(measured[calm].mean()), float(predicted[calm].mean()), error)


def choices(costs: TableCosts) -> list[Choice]:
    """The choice of k by the tables against that by measured whole steps, where those have several k."""
    loads: dict[tuple[int, int], dict[int, float]] = {}
    for step in costs.whole_steps:
        loads.setdefault((step.batch, step.context), {})[step.query - 1] = step.ms
    return [
        _choice(costs, batch, context, measured, alpha)
        for (batch, context), measured in loads.items()
        if len(measured) > 2
        for alpha in ALPHAS
    ]


def _choice(costs: TableCosts, batch: int, context: int, measured: dict[int, float], alpha: float) -> Choice:
    drafts = sorted(measured)
    tokens = np.array([sum(alpha**i for i in range(k + 1)) for k in drafts])
    predicted_ms = [round_ms(compiled(costs, k), batch, k, batch * context) for k in drafts]
    was, told = tokens / np.array([measured[k] for k in drafts]), tokens / np.array(predicted_ms)
    chosen = int(told.argmax())
    regret = 100 * float(1 - was[chosen] / was.max())
    best = drafts[int(was.argmax())]
    return Choice(batch, context, alpha, best, drafts[chosen], regret, _kendall_tau(was, told))


def _kendall_tau(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> float:
    """Share of pairs that both rank alike, minus those that they rank unlike."""
    places = [(i, j) for i in range(len(one)) for j in range(i)]
    return float(np.mean([np.sign((one[i] - one[j]) * (two[i] - two[j])) for i, j in places]))
