"""Who sends requests, when, and to which replica."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import simpy

from ..workload.requests import Requests
from .recorder import RequestLog
from .rows import Row

if TYPE_CHECKING:
    from .loop import Replica

Events = Generator[simpy.Event, Any, None]


class Router:
    """Hands each request to a replica: in turn, or to the one with the fewest resident and waiting requests."""

    def __init__(self, replicas: list[Replica], policy: str, log: RequestLog, first_index: int = 0) -> None:
        self._replicas = replicas
        self._first_index = first_index
        self._least_loaded = policy == "least_loaded"
        self._log = log
        self._turn = 0

    def submit(self, request: int, arrival_ms: float) -> bool:
        """Send a request on its way; False if it was refused because it can never fit."""
        if self._least_loaded:
            index = min(range(len(self._replicas)), key=lambda i: self._replicas[i].load())
        else:
            index = self._turn % len(self._replicas)
            self._turn += 1
        self._log.arrival_ms[request] = arrival_ms
        self._log.replica[request] = self._first_index + index
        if self._replicas[index].submit(request):
            return True
        self._log.fail(request)
        return False


class PoolRouter:
    """Hands each request to the router of its slice's pool."""

    def __init__(self, routers: Mapping[int, Router], requests: Requests) -> None:
        self._routers = routers
        self._slice_index = requests.slice_index.data

    def submit(self, request: int, arrival_ms: float) -> bool:
        """Send a request on its way; False if it was refused because it can never fit."""
        return self._routers[self._slice_index[request]].submit(request, arrival_ms)


class OpenTraffic:
    """Requests arrive at their own times, whatever the engine does."""

    def __init__(self, env: simpy.Environment, requests: Requests, router: Router | PoolRouter) -> None:
        self._env = env
        self._arrival_ms = requests.arrival_ms.tolist()
        self._router = router

    def start(self) -> None:
        """Begin to send."""
        self._env.process(self._send())

    def _send(self) -> Events:
        for request, arrival_ms in enumerate(self._arrival_ms):
            if arrival_ms > self._env.now:
                yield self._env.timeout(arrival_ms - self._env.now)
            self._router.submit(request, min(arrival_ms, self._env.now))

    def sent(self) -> int:
        """How many requests were sent: all of them, in the end."""
        return len(self._arrival_ms)

    def ended(self, row: Row, delivered_ms: float) -> None:
        """Nobody waits for an answer before asking."""


class ClosedTraffic:
    """A fixed number of users, each sending its next request some think time after its last answer was complete.

    Nobody sends after `send_until_ms`.
    """

    def __init__(self, env: simpy.Environment, requests: Requests, router: Router | PoolRouter) -> None:
        self._env = env
        self._total = len(requests)
        self._concurrency = requests.concurrency or self._total
        self._think_time_ms = requests.think_time_ms
        self._send_until_ms = math.inf if requests.send_until_ms is None else requests.send_until_ms
        self._router = router
        self._next = 0

    def start(self) -> None:
        """Send the first request of every user."""
        for _ in range(min(self._concurrency, self._total)):
            self._send(0.0)

    def _send(self, arrival_ms: float) -> None:
        """Send one user's next request; one that is refused is followed by another at once."""
        while self._next < self._total and arrival_ms < self._send_until_ms:
            request = self._next
            self._next += 1
            if self._router.submit(request, arrival_ms):
                return

    def sent(self) -> int:
        """How many requests were sent, the first ones of the list."""
        return self._next

    def ended(self, row: Row, delivered_ms: float) -> None:
        """A user has its answer and starts to think."""
        next_ms = delivered_ms + self._think_time_ms
        if next_ms <= self._env.now:
            self._send(next_ms)
        else:
            self._env.process(self._send_later(next_ms))

    def _send_later(self, next_ms: float) -> Events:
        yield self._env.timeout(next_ms - self._env.now)
        self._send(min(next_ms, self._env.now))
