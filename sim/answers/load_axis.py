"""What "more load" means for a scenario: the key that is turned up, and the scenario at any value of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..analysis.overload import MIN_ARRIVALS
from ..inputs.errors import InputError
from ..inputs.load import LoadedScenario
from ..inputs.numbers import MAX_REQUESTS
from ..inputs.scenario import AtOnce, Closed, Scenario, TraceArrivals

REQUESTS_PER_USER = 8  # at least, so that the start, when all users ask at once, is not most of the run
MOST_RATE = 1e6  # requests per second
MOST_SCALE = 1e6
MOST_USERS = 10_000
USERS_PER_SLOT = 2  # beyond it more users only wait longer


class LoadAxis(NamedTuple):
    """path: the scenario's key. offered: its value there. most: where the search for more ends. whole: an integer."""

    path: str
    unit: str
    offered: float
    most: float
    whole: bool

    def scenario_at(self, scenario: Scenario, load: float, requests: int | None = None) -> Scenario:
        """The scenario with that load, everything else as it is; closed loops get requests enough for their users.

        requests: instead of the scenario's number.
        """
        workload = scenario.workload
        value: float | int = int(load) if self.whole else load
        arrivals = workload.arrivals.model_copy(update={self.path.rpartition(".")[2]: value})
        changes: dict[str, Any] = {"arrivals": arrivals}
        if requests is not None:
            changes["requests"] = requests
        elif self.whole and workload.requests is not None:
            changes["requests"] = min(MAX_REQUESTS, max(workload.requests, REQUESTS_PER_USER * int(load)))
        return scenario.model_copy(update={"workload": workload.model_copy(update=changes)})


def load_axis(loaded: LoadedScenario, most_running: int) -> LoadAxis:
    """How the scenario's traffic is turned up. most_running: requests that its engine runs at once.

    Raises InputError for traffic that has no load, or too few requests to see a queue grow.
    """
    workload = loaded.scenario.workload
    arrivals = workload.arrivals
    if isinstance(arrivals, AtOnce):
        what, rule = "all requests arrive at once", "capacity is a rate or a number of users"
        remedy = "take poisson, gamma, closed or trace arrivals"
        raise InputError([loaded.problem("workload.arrivals.kind", what, rule, remedy)])
    if isinstance(arrivals, Closed):
        users = max(arrivals.concurrency, min(USERS_PER_SLOT * most_running, MOST_USERS))
        return LoadAxis("workload.arrivals.concurrency", "users", arrivals.concurrency, users, True)
    if workload.requests is not None and workload.requests < MIN_ARRIVALS:
        what, rule = f"{workload.requests} requests", "too few to see whether a queue grows"
        problem = loaded.problem("workload.requests", what, rule, f"give {MIN_ARRIVALS} or more, better thousands")
        raise InputError([problem])
    if isinstance(arrivals, TraceArrivals) and arrivals.rate is None:
        return LoadAxis("workload.arrivals.scale", "times the trace's rate", arrivals.scale, MOST_SCALE, False)
    rate = float(arrivals.rate or 0.0)
    most = MOST_RATE if workload.duration_s is None else min(MOST_RATE, 1e6 / workload.duration_s)
    return LoadAxis("workload.arrivals.rate", "requests/s", rate, max(rate, most), False)
