"""The clock: replicas run step after step in one SimPy environment until all requests have ended.

One event per step, or per run of steps between which nothing can happen; nothing here decides what a step contains.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from ..cost.step_costs import StepCosts, round_shape
from ..workload.requests import Requests
from .block_contents import block_contents
from .core import EngineCore
from .policies import draft_policy
from .recorder import PLAN_COLUMNS, RequestLog, StepLog
from .records import Records
from .round_tables import RoundTables
from .rounds import RoundCounter
from .rows import Row, StepPlan
from .segments import SegmentLog
from .settings import EngineSettings
from .shape import step_shape
from .traffic import ClosedTraffic, OpenTraffic, PoolRouter, Router

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
        others_listen: bool,
    ) -> None:
        settings = core.settings
        self.core = core
        self.step_log = StepLog(core.settled.block_reach, settings.block_size)
        self._env = env
        self._costs = costs
        self._log = log
        self._on_end = on_end
        self._asleep: simpy.Event | None = None
        # Where another replica may serve a user's next request, an answer must be told when it is delivered.
        self._others_listen = others_listen

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
        hides_host = core.settings.async_scheduling
        delivers_early = core.settings.delivers_before_drafting
        terms_of, log = self._costs.terms, self.step_log
        timeout = env.timeout
        step, last_ms = 0, 1.0
        since, typical = 0, 1.0  # steps since the batch last changed, and how many it usually takes
        while True:
            if not core.has_work():
                self._asleep = env.event()
                yield self._asleep
            start_ms = env.now
            ahead = core.rounds_ahead()
            # A long quiet stretch is worth a long look, but only once it has begun: what is looked at in vain is lost.
            guess = max(settled.rounds_without_finish(), int(min(1.5 * typical, FEWEST_STEPS_AHEAD + 2 * since)))
            if min(ahead, guess) >= FEWEST_STEPS_AHEAD:
                guess = int(min(guess, MOST_STEPS_AHEAD, (env.peek() - start_ms) / last_ms + 1))
                if min(ahead, guess) >= FEWEST_STEPS_AHEAD:
                    steps, last_ms, changed = yield from self._steps_ahead(min(ahead, guess), step)
                    step, since = step + steps, since + steps
                    if changed:
                        since, typical = 0, 0.8 * typical + 0.2 * since
                    continue
            plan = None
            if ahead > 0:
                shape = round_shape(settled.count, settled.drafts, settled.context)
                terms = terms_of(shape, core.passes(settled.drafts))
            else:
                plan = core.plan_step()
                shape = step_shape(plan, settled.draft_tokens() if plan.settled else 0, settled.context)
                terms = terms_of(shape, plan.draft_passes)
                self._note_single_rows(plan, step)
            draft_ms = terms.draft
            host_ms, last_ms = terms.host_and_step_ms(hides_host)
            log.add(
                start_ms,
                host_ms,
                last_ms,
                terms,
                shape,
                scheduler.num_running(),
                len(scheduler.waiting),
                self._blocks_held(),
                plan.proposes if plan else settled.drafts,
            )
            drafting_ms = draft_ms if delivers_early else 0.0  # after the step's tokens have left
            ends_early = self._others_listen and drafting_ms > 0
            yield timeout(last_ms - drafting_ms if ends_early else last_ms)
            committed, finished = core.commit(plan, step) if plan else core.commit_rounds()
            log.committed_tokens.append(committed)
            for row in finished:
                self._end(row, step, env.now if ends_early else env.now - drafting_ms)
            if ends_early:
                yield timeout(drafting_ms)
            step, since = step + 1, since + 1
            if finished or plan:
                since, typical = 0, 0.8 * typical + 0.2 * since

    def _steps_ahead(self, ahead: int, step: int) -> Generator[simpy.Event, Any, tuple[int, float, bool]]:
        """Run up to `ahead` steps at once: rounds of the same rows, until one finishes or anything else happens.

        Gives the same records as step by step; returns how many steps it were, how long the last one took, and whether
        any row finished.
        """
        env, core, settled = self._env, self.core, self.core.settled
        drafts, count = settled.drafts, settled.count
        positions, contexts = settled.look_ahead(ahead)
        phases, extrapolated, graph = self._costs.rounds(
            count, drafts, contexts[:-1].astype(np.float64), core.passes(drafts)
        )
        device_ms = phases[1] + phases[3] + phases[4] + phases[5]
        if core.settings.async_scheduling:
            phases[0] = np.maximum(0.0, phases[0] - device_ms)
        durations = phases[0] + device_ms
        times = np.empty(len(durations) + 1)
        times[0], times[1:] = env.now, durations
        np.add.accumulate(times, out=times)
        steps = max(1, int(np.searchsorted(times[:-1], env.peek())))
        table = np.zeros((steps, len(PLAN_COLUMNS)))
        table[:, 0] = times[:steps]
        table[:, 1:7] = phases[:, :steps].T
        table[:, 7] = (durations * extrapolated)[:steps]
        table[:, 8:10] = count, count * drafts
        table[:, 12] = contexts[:steps]
        table[:, 13:15] = count, len(core.scheduler.waiting)
        table[:, 15] = settled.blocks_at(positions[:steps])
        table[:, 16] = graph
        table[:, 17] = drafts
        self.step_log.add_many(table)
        undelivered_ms = float(phases[5, steps - 1]) if core.settings.delivers_before_drafting else 0.0
        ends_early = self._others_listen and undelivered_ms > 0
        yield env.timeout(times[steps] - env.now - (undelivered_ms if ends_early else 0.0))
        committed = (contexts[1 : steps + 1] - contexts[:steps]).tolist()
        finished, overshoot = core.jump(positions, contexts, steps)
        committed[-1] -= overshoot
        self.step_log.committed_tokens.extend(committed)
        step += steps - 1
        for row in finished:
            self._end(row, step, env.now if ends_early else env.now - undelivered_ms)
        if ends_early:
            yield env.timeout(undelivered_ms)
        return steps, float(durations[steps - 1]), bool(finished)

    def _blocks_held(self) -> int:
        """Blocks of the step that is added next; those of settled rows with a fixed draft length are counted later."""
        held, settled = self.core.scheduler.blocks.held_by_rows, self.core.settled
        if settled.varying:
            return held + settled.blocks_needed()
        if settled.count:
            self.step_log.settled_blocks(settled.flat, settled.base)
        return held

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
                    finishes = start + tokens >= row.known_tokens
                    row.own_prefill_ms += self._costs.chunk_ms(tokens, start, finishes)

    def _end(self, row: Row, step: int, delivered_ms: float) -> None:
        self.core.segments.close(row, step)
        self._log.finish(row, step)
        self._on_end(row, delivered_ms)


@dataclass(frozen=True, slots=True)
class Pool:
    """Replicas with settings and costs of their own for some slices (None: for all)."""

    settings: EngineSettings
    costs: StepCosts
    slices: frozenset[int] | None = None


def simulate(
    requests: Requests, runs: AcceptanceRuns, settings: EngineSettings, costs: StepCosts, *, settle: bool = True
) -> Records:
    """As `simulate_pools`, with one pool for all slices."""
    return simulate_pools(requests, runs, [Pool(settings, costs)], settle=settle)


def simulate_pools(requests: Requests, runs: AcceptanceRuns, pools: Sequence[Pool], *, settle: bool = True) -> Records:
    """Run all requests to their end and return what was recorded. The same arguments give the same records.

    pools: every slice belongs to one; replicas are counted through all of them. Closed traffic with `send_until_ms` may
    end before the list does: the records are those of the requests sent. settle=False schedules every row of every step
    one by one, much slower and with the same outcome.
    """
    env = simpy.Environment()
    log = RequestLog(len(requests))
    segments = SegmentLog()
    drafts = max(pool.settings.num_speculative_tokens for pool in pools)
    rounds = RoundCounter(runs, drafts, deliverable_tokens(requests, pools[0].settings))
    tables = RoundTables(runs, drafts)
    others = sum(pool.settings.replicas for pool in pools) > 1
    traffic: OpenTraffic | ClosedTraffic

    def on_end(row: Row, delivered_ms: float) -> None:
        traffic.ended(row, delivered_ms)

    replicas: list[Replica] = []
    routers = []
    for pool in pools:
        first = len(replicas)
        for _ in range(pool.settings.replicas):
            core = EngineCore(
                pool.settings,
                requests,
                tables,
                rounds,
                segments,
                policy=draft_policy(pool.settings, pool.costs),
                content=block_contents(requests, pool.settings),
                settle=settle,
            )
            replicas.append(Replica(env, core, pool.costs, log, on_end, others))
        routers.append(Router(replicas[first:], pool.settings.router, log, first))
    router = routers[0] if pools[0].slices is None else _by_slice(pools, routers, requests)
    traffic = (OpenTraffic if requests.concurrency is None else ClosedTraffic)(env, requests, router)
    traffic.start()
    for replica in replicas:
        env.process(replica.run())
    env.run()
    return Records(
        steps=[replica.step_log.steps() for replica in replicas],
        requests=log.records(traffic.sent()),
        segments=segments.segments(),
        counts=rounds.counts(sum(replica.core.committed_by_rounds for replica in replicas)),
        async_delivery=pools[0].settings.delivers_before_drafting,
        usable_blocks=_usable_blocks(pools),
        prefix_cache=_prefix_cache(replicas) if pools[0].settings.prefix_caching else None,
    )


def _prefix_cache(replicas: Sequence[Replica]) -> tuple[int, int]:
    pools = [replica.core.scheduler.blocks for replica in replicas]
    return sum(blocks.queried_tokens for blocks in pools), sum(blocks.hit_tokens for blocks in pools)


def _by_slice(pools: Sequence[Pool], routers: Sequence[Router], requests: Requests) -> PoolRouter:
    chosen = {index: router for pool, router in zip(pools, routers, strict=True) for index in pool.slices or ()}
    return PoolRouter(chosen, requests)


def _usable_blocks(pools: Sequence[Pool]) -> int | None:
    """KV blocks of all replicas together, their null blocks left out; None where some pool has no limit."""
    total = 0
    for pool in pools:
        if pool.settings.num_gpu_blocks is None:
            return None
        total += (pool.settings.num_gpu_blocks - 1) * pool.settings.replicas
    return total


def deliverable_tokens(requests: Requests, settings: EngineSettings) -> NDArray[np.int64]:
    """Output tokens of each request, cut where `max_model_len` ends it."""
    if settings.max_model_len is None:
        return requests.output_tokens
    return np.clip(settings.max_model_len - requests.prompt_tokens, 0, requests.output_tokens)
