"""Closed loads of a scenario: simulated once, remembered by scope, concurrency and arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ..analysis.statistics import Sample
from ..inputs.errors import InputError
from ..inputs.load import LoadedScenario
from .closed_load import Load, LoadMeasure, LoadTask, Scope, closed_requests, run_load, throughput_sample
from .executors import Mapped
from .plan import ArmPlan

Progress = Callable[[int, int, str], None]
Wanted = tuple[Scope, int, Sequence[ArmPlan]]


class LoadStore:
    """Runs loads on demand, every replication of them. All arms of a load see the same requests."""

    def __init__(
        self, loaded: LoadedScenario, task: LoadTask, replications: int, mapped: Mapped, progress: Progress
    ) -> None:
        self._loaded = loaded
        self._task = task
        self._replications = replications
        self._mapped = mapped
        self._progress = progress
        self._known: dict[tuple[str, str, int, str], list[LoadMeasure]] = {}

    def simulate(self, wanted: Iterable[Wanted], label: str) -> None:
        """Make sure that these are known. Raises InputError for mistakes in traces and length files."""
        loads = []
        for scope, concurrency, arms in wanted:
            missing = tuple(arm for arm in arms if self._key(scope, concurrency, arm.name) not in self._known)
            if missing:
                loads += [Load(scope, concurrency, missing, number) for number in range(self._replications)]
        if not loads:
            return
        closed_requests(self._task, loads[0], self._loaded.problem)  # mistakes are told with their place
        results = self._mapped(partial(run_load, self._task), loads)
        for done, (load, found) in enumerate(zip(loads, results, strict=True), 1):
            for name, measure in found.items():
                self._known.setdefault(self._key(load.scope, load.concurrency, name), []).append(measure)
            self._progress(done, len(loads), label)
        for load in loads:
            self._check(load)

    def measures(self, scope: Scope, concurrency: int, arm: str) -> list[LoadMeasure]:
        """One measure for each replication of a load that was simulated."""
        return self._known[self._key(scope, concurrency, arm)]

    def sample(self, scope: Scope, concurrency: int, arm: str) -> Sample:
        """Output tokens per second."""
        return throughput_sample(self.measures(scope, concurrency, arm), concurrency)

    def same(self, scope: Scope, concurrency: int, arm: str, other: str) -> None:
        """Under this load an arm does what another one does: nothing is simulated again."""
        self._known[self._key(scope, concurrency, arm)] = self.measures(scope, concurrency, other)

    def knows(self, scope: Scope, concurrency: int, arm: str) -> bool:
        """Whether a load was simulated."""
        return self._key(scope, concurrency, arm) in self._known

    @property
    def every(self) -> list[LoadMeasure]:
        """All that was simulated."""
        return [one for measures in self._known.values() for one in measures]

    @staticmethod
    def _key(scope: Scope, concurrency: int, arm: str) -> tuple[str, str, int, str]:
        return scope.kind, scope.name, concurrency, arm

    def _check(self, load: Load) -> None:
        """A load that delivers nothing has no throughput to compare."""
        for arm in load.arms:
            if any(
                not one.tokens or not one.user_seconds for one in self.measures(load.scope, load.concurrency, arm.name)
            ):
                what = f"arm {arm.name} delivers nothing at {load.concurrency} users of {load.scope.name}"
                rule, remedy = "requests must fit into the engine", "shorten them or give the engine more room"
                raise InputError([self._loaded.problem("workload.slices", what, rule, remedy)])
