"""The clock: replicas run step after step in one SimPy environment, a router hands them requests.

One event per step and one per open arrival; nothing here decides what a step contains or costs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from ..cost.step_costs import StepCosts, StepShape
from ..workload.requests import Requests
from .core import EngineCore
from .recorder import PLAN_COLUMNS, RequestLog, StepLog
from .records import Records
from .rounds import RoundCounter
from .rows import Row, StepPlan
from .segments import SegmentLog
from .settings import EngineSettings
from .settled import next_positions
from .shape import NO_CHUNKS, step_shape

FEWEST_STEPS_AHEAD = 8  # below, arrays cost more than single steps
MOST_STEPS_AHEAD = 256
Events = Generator[simpy.Event, Any, None]


class Replica:
    """One engine: while there is work it runs a step, else it sleeps until a request comes."""

    def __init__(
        self,
        env: simpy.Environment,
        core: EngineCore,
        costs: StepCosts,
        log: RequestLog,
        on_end: Callable[[Row, float], None],
    ) -> None:
        settings = core.settings
        self.core = core
        self.max_running = 0
        reach = settings.num_speculative_tokens + settings.lookahead + settings.block_size
        self.step_log = StepLog(reach, settings.block_size)
        self._env = env
        self._costs = costs
        self._log = log
        self._on_end = on_end
        self._asleep: simpy.Event | None = None

    def submit(self, request: int) -> bool:
        """Put a request into the waiting queue; False if it can never fit."""
        if not self.core.add(request):
            return False
        if self._asleep is not None:
            self._asleep.succeed()
            self._asleep = None
        return True

    def load(self) -> int:
        """Requests resident or waiting."""
        return self.core.scheduler.num_running() + len(self.core.scheduler.waiting)

    def run(self) -> Events:
        """The engine's process: plan, let the step's time pass, commit."""
        env, core, scheduler, settled = self._env, self.core, self.core.scheduler, self.core.settled
        drafts, hides_host = core.settings.num_speculative_tokens, core.settings.async_scheduling
        terms_of, record, note_blocks = self._costs.terms, self.step_log.add, self.step_log.settled_blocks
        timeout = env.timeout
        step, last_ms = 0, 1.0
        while True:
            if not core.has_work():
                self._asleep = env.event()
                yield self._asleep
            start_ms = env.now
            ahead = min(scheduler.rounds_ahead(), MOST_STEPS_AHEAD)
            if ahead >= FEWEST_STEPS_AHEAD:
                ahead = int(min(ahead, (env.peek() - start_ms) / last_ms + 1))
            if ahead >= FEWEST_STEPS_AHEAD:
                steps, last_ms = yield from self._steps_ahead(ahead, step)
                step += steps
                continue
            plan = None
            if ahead > 0:
                shape = StepShape(settled.count, settled.count * drafts, settled.context, NO_CHUNKS, 0, 0)
                terms = terms_of(shape, drafts)
            else:
                plan = core.plan_step()
                shape = step_shape(plan, drafts, settled.context)
                terms = terms_of(shape, plan.draft_passes)
                self._note_single_rows(plan, step)
            host_ms, target_ms, target_decode_ms, kv_update_ms, sampling_ms, draft_ms, extrapolated = terms
            device_ms = target_ms + kv_update_ms + sampling_ms + draft_ms
            if hides_host:
                host_ms = max(0.0, host_ms - device_ms)
            last_ms = host_ms + device_ms
            running, waiting = scheduler.num_running(), len(scheduler.waiting)
            if running > self.max_running:
                self.max_running = running
            if settled.count:
                note_blocks(settled.flat, settled.base)
            decodes, draft_tokens, context, chunks, _, _ = shape
            record(
                (
                    start_ms,
                    host_ms,
                    target_ms,
                    target_decode_ms,
                    kv_update_ms,
                    sampling_ms,
                    draft_ms,
                    last_ms if extrapolated else 0.0,
                    decodes,
                    draft_tokens,
                    len(chunks),
                    sum([tokens for tokens, _ in chunks]) if chunks else 0,
                    context,
                    running,
                    waiting,
                    scheduler.blocks.held_by_rows,
                )
            )
            yield timeout(last_ms)
            committed, finished = core.commit(plan, step) if plan else core.commit_rounds()
            self.step_log.committed_tokens.append(committed)
            for row in finished:
                self._end(row, step, env.now - draft_ms if hides_host else env.now)
            step += 1

    def _steps_ahead(self, ahead: int, step: int) -> Generator[simpy.Event, Any, tuple[int, float]]:
        """Run up to `ahead` steps at once: rounds of the same rows, until the next event of the whole simulation.

        Gives the same records as step by step; returns how many steps it were and how long the last one took.
        """
        env, core, settled = self._env, self.core, self.core.settled
        drafts, count, base = core.settings.num_speculative_tokens, settled.count, settled.base
        flats, contexts = settled.look_ahead(ahead)
        phases = self._costs.rounds(count, drafts, contexts[:-1].astype(np.float64), drafts)
        device_ms = phases[1] + phases[3] + phases[4] + phases[5]
        if core.settings.async_scheduling:
            phases[0] = np.maximum(0.0, phases[0] - device_ms)
        durations = phases[0] + device_ms
        times = np.add.accumulate(np.concatenate(([env.now], durations)))
        steps = max(1, int(np.searchsorted(times[:-1], env.peek())))
        table = np.zeros((steps, len(PLAN_COLUMNS)))
        table[:, 0] = times[:steps]
        table[:, 1:7] = phases[:, :steps].T
        if count > self._costs.max_decode_batch:
            table[:, 7] = durations[:steps]
        table[:, 8:10] = count, count * drafts
        table[:, 12] = contexts[:steps]
        table[:, 13:15] = count, len(core.scheduler.waiting)
        self.step_log.add_many(table, flats[:steps], base)
        yield env.timeout(times[steps] - env.now)
        committed = np.diff(contexts[: steps + 1]).tolist()
        finished, overshoot = core.jump(flats, contexts, steps)
        committed[-1] -= overshoot
        self.step_log.committed_tokens.extend(committed)
        step += steps - 1
        undelivered_ms = phases[5, steps - 1] if core.settings.async_scheduling else 0.0
        for row in finished:
            self._end(row, step, env.now - undelivered_ms)
        return steps, float(durations[steps - 1])

    def _note_single_rows(self, plan: StepPlan, step: int) -> None:
        if not (plan.rows or plan.left_out or plan.preempted):
            if not plan.settled:
                raise RuntimeError(f"nothing could be scheduled at {self._env.now} ms although requests wait")
            return
        self.core.segments.mark(plan, step)
        for row, tokens, start, _, decodes in plan.rows:
            if not decodes:
                row.prefill_passes += 1
                if row.first_token_step < 0:
                    row.own_prefill_ms += self._costs.target_ms(tokens, start)

    def _end(self, row: Row, step: int, delivered_ms: float) -> None:
        self.core.segments.close(row, step)
        self._log.finish(row, step)
        self._on_end(row, delivered_ms)


class Router:
    """Hands each request to a replica: in turn, or to the one with the fewest resident and waiting requests."""

    def __init__(self, replicas: list[Replica], policy: str, log: RequestLog) -> None:
        self._replicas = replicas
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
        self._log.replica[request] = index
        if self._replicas[index].submit(request):
            return True
        self._log.fail(request)
        return False


class OpenTraffic:
    """Requests arrive at their own times, whatever the engine does."""

    def __init__(self, env: simpy.Environment, requests: Requests, router: Router) -> None:
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

    def ended(self, row: Row, delivered_ms: float) -> None:
        """Nobody waits for an answer before asking."""


class ClosedTraffic:
    """A fixed number of users, each sending its next request some think time after its last answer was complete."""

    def __init__(self, env: simpy.Environment, requests: Requests, router: Router) -> None:
        self._env = env
        self._total = len(requests)
        self._concurrency = requests.concurrency or self._total
        self._think_time_ms = requests.think_time_ms
        self._router = router
        self._next = 0

    def start(self) -> None:
        """Send the first request of every user."""
        for _ in range(min(self._concurrency, self._total)):
            self._send(0.0)

    def _send(self, arrival_ms: float) -> None:
        """Send one user's next request; one that is refused is followed by another at once."""
        while self._next < self._total:
            request = self._next
            self._next += 1
            if self._router.submit(request, arrival_ms):
                return

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


def simulate(
    requests: Requests, runs: AcceptanceRuns, settings: EngineSettings, costs: StepCosts, *, settle: bool = True
) -> Records:
    """Run all requests to their end and return what was recorded. The same arguments give the same records.

    settle=False schedules every row of every step one by one, much slower and with the same outcome.
    """
    env = simpy.Environment()
    log = RequestLog(len(requests))
    segments = SegmentLog()
    drafts = settings.num_speculative_tokens
    rounds = RoundCounter(runs, drafts, requests.output_tokens, deliverable_tokens(requests, settings))
    next_flat = next_positions(runs, drafts)
    traffic: OpenTraffic | ClosedTraffic

    def on_end(row: Row, delivered_ms: float) -> None:
        traffic.ended(row, delivered_ms)

    replicas = []
    for _ in range(settings.replicas):
        core = EngineCore(settings, requests, runs, next_flat, rounds, segments, settle=settle)
        replicas.append(Replica(env, core, costs, log, on_end))
    router = Router(replicas, settings.router, log)
    traffic = (OpenTraffic if requests.concurrency is None else ClosedTraffic)(env, requests, router)
    traffic.start()
    for replica in replicas:
        env.process(replica.run())
    env.run()
    return Records(
        steps=[replica.step_log.steps() for replica in replicas],
        requests=log.records(),
        segments=segments.segments(),
        counts=rounds.counts(sum(replica.core.committed_by_rounds for replica in replicas)),
        async_delivery=settings.async_scheduling,
        usable_blocks=None if settings.num_gpu_blocks is None else settings.num_gpu_blocks - 1,
        max_running=sum(replica.max_running for replica in replicas),
    )


def deliverable_tokens(requests: Requests, settings: EngineSettings) -> NDArray[np.int64]:
    """Output tokens of each request, cut where `max_model_len` ends it."""
    if settings.max_model_len is None:
        return requests.output_tokens
    return np.clip(settings.max_model_len - requests.prompt_tokens, 0, requests.output_tokens)
