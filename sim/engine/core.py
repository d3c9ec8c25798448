"""The engine without a clock: plan a step, then commit what its rounds accepted.

`specsim run` drives it with costs and a clock, the scheduling-truth benchmark with recorded commits; both go through
exactly this code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..acceptance.runs import AcceptanceRuns
from ..workload.requests import Requests
from .fixed_batch_scheduler import FixedBatchScheduler
from .policies import DraftPolicy, FixedDrafts
from .prefix_blocks import BlockContent
from .records import Phase
from .round_tables import RoundTables
from .rounds import RoundCounter
from .rows import Row, Scheduled, StepPlan
from .segments import SegmentLog
from .settings import EngineSettings
from .settled import SettledRows
from .sglang_scheduler import SglangScheduler
from .varying_rows import VaryingRows
from .vllm_scheduler import VllmScheduler

Ints = NDArray[np.int64]

Scheduler = VllmScheduler | SglangScheduler | FixedBatchScheduler
SCHEDULERS: dict[str, type[VllmScheduler] | type[SglangScheduler] | type[FixedBatchScheduler]] = {
    "vllm": VllmScheduler,
    "sglang": SglangScheduler,
    "fixed_batch": FixedBatchScheduler,
}


def idle_scheduler(settings: EngineSettings) -> Scheduler:
    """A scheduler without requests, to ask what could ever run."""
    nothing = AcceptanceRuns(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8), None, 1)
    tables = RoundTables(nothing, settings.num_speculative_tokens)
    settled = SettledRows(tables, settings.num_speculative_tokens, settings.lookahead, settings.block_size)
    return SCHEDULERS[settings.style](settings, settled)


class EngineCore:
    """One replica: its scheduler, and the state that commits change.

    policy: how many drafts a step proposes. content: what blocks hold, for a prefix cache.
    accept_dummies: whether placeholder drafts near `max_model_len` meet the acceptance model (recorded runs imposed it
    on them) or are all rejected (real drafts that were never proposed). settle: whether decodes may be kept as arrays;
    the plans are the same either way.
    """

    def __init__(
        self,
        settings: EngineSettings,
        requests: Requests,
        tables: RoundTables,
        rounds: RoundCounter,
        segments: SegmentLog,
        *,
        policy: DraftPolicy,
        content: BlockContent | None = None,
        accept_dummies: bool = False,
        settle: bool = True,
    ) -> None:
        self.settings = settings
        self.rounds = rounds
        self.segments = segments
        self.committed_by_rounds = 0
        self._drafts = settings.num_speculative_tokens
        self.policy = policy
        shape = (tables, self._drafts, settings.lookahead, settings.block_size)
        varies = tables.drafted is not None or not isinstance(self.policy, FixedDrafts)
        drafts_first = SCHEDULERS[settings.style].drafts_first
        self._varying = VaryingRows(*shape, keeps_most=drafts_first) if varies else None
        self.settled = self._varying or SettledRows(*shape)
        self.scheduler = SCHEDULERS[settings.style](settings, self.settled, content)
        # A memoryview hands out plain integers, several times faster than an array does.
        self._prompt_tokens = requests.prompt_tokens.data
        self._output_tokens = requests.output_tokens.data
        self._prefix_hit_tokens = requests.prefix_hit_tokens.data
        self._offsets = tables.runs.offsets.data
        self._accepted = tables.runs.accepted.data
        self._drafted = None if tables.drafted is None else tables.drafted.data
        self._longest = settings.longest
        self._accept_dummies = accept_dummies
        threshold = settings.long_prefill_token_threshold
        self._may_settle = settle and (threshold == 0 or threshold > self._drafts) and not settings.prefix_caching
        self._priority = None if requests.priority is None else requests.priority.data
        self._arrivals = 0

    def add(self, request: int) -> bool:
        """Let a request join the waiting queue; False if it can never fit."""
        prompt = self._prompt_tokens[request]
        end = min(prompt + self._output_tokens[request], self._longest)
        cached = self._prefix_hit_tokens[request]
        if end <= prompt or not self.scheduler.fits(prompt - cached, end):
            return False
        row = Row(request, prompt, end, cached, self._offsets[request])
        if self._priority is not None:
            row.priority = self._priority[request]
        self._arrivals += 1
        row.arrival = self._arrivals
        row.can_settle = self._may_settle and end + 3 * (self._drafts + 1) <= self._longest
        self.scheduler.waiting.append(row)
        return True

    def has_work(self) -> bool:
        """Whether anything is resident or waiting."""
        scheduler = self.scheduler
        return bool(self.settled.count or scheduler.running or scheduler.waiting)

    def plan_step(self) -> StepPlan:
        """Schedule a step and decide what the drafter runs in it (rules 18 to 20)."""
        plan = self.scheduler.schedule()
        if not self._drafts:
            return plan
        if self.scheduler.drafts_first:
            self._draft_now(plan)
            return plan
        plan.proposes = self.policy.choose(self, plan)
        plan.dummy_proposals = bool(plan.rows) and self._too_close_to_the_end(plan)
        plan.draft_passes = 0 if plan.dummy_proposals else self._draft_passes(plan)
        return plan

    def _draft_now(self, plan: StepPlan) -> None:
        """The drafts that this step verifies are chosen in it; in a prefill batch the drafter only prefills too."""
        if plan.rows and not plan.rows[0].decodes:
            plan.proposes, plan.draft_passes = self.settled.drafts, 1
            return
        plan.proposes = drafts = self.policy.choose(self, plan)
        plan.draft_passes = self.passes(drafts)
        if self._varying is not None:
            self._varying.propose(drafts)
        plan.rows = [self._verifying(row, start, drafts) for row, _, start, _, _ in plan.rows]

    def _verifying(self, row: Row, start: int, most: int) -> Scheduled:
        """A round that verifies what the drafter proposes at the row's position, at most so many drafts."""
        drafts = most if self._drafted is None else min(self._drafted[row.position], most)
        return Scheduled(row, 1 + drafts, start, drafts, True)

    def rounds_ahead(self) -> int:
        """Steps that can only be whole rounds of all settled rows with as many drafts, until one finishes."""
        if self._drafted is not None or (
            self._varying is not None and self.policy.steady(self.settled.count) != self.settled.drafts
        ):
            return 0
        return self.scheduler.rounds_ahead()

    def passes(self, proposes: int) -> int:
        """Serial passes of the drafter that propose so many tokens; the first runs also at a reached 0 (rule 19)."""
        if not self._drafts:
            return 0
        return max(1, proposes) if self.settings.serial_drafting else 1

    def jump(self, positions: NDArray[np.int64], contexts: NDArray[np.int64], rounds: int) -> tuple[list[Row], int]:
        """Commit several steps that were whole rounds of the settled rows and nothing else.

        Returns the rows that the last of them finished, and the tokens by which these overshot their ends.
        """
        self.rounds.full_rounds(positions[:rounds].ravel(), rounds * self.settled.count, self.settled.drafts)
        self.committed_by_rounds += int(contexts[rounds]) - self.settled.context
        self.settled.jump(positions, contexts, rounds)
        finished, overshoot = self.settled.take_finished()
        self.committed_by_rounds -= overshoot
        return finished, overshoot

    def commit_rounds(self) -> tuple[int, list[Row]]:
        """End a step that was a whole round of every settled row; as `commit`."""
        settled = self.settled
        self.rounds.full_rounds(settled.flat, settled.count, settled.drafts)
        committed = settled.advance()
        finished, overshoot = settled.take_finished()
        committed -= overshoot
        self.committed_by_rounds += committed
        return committed, finished

    def _too_close_to_the_end(self, plan: StepPlan) -> bool:
        """Rule 20: a row whose drafts would pass `max_model_len` keeps the drafter from running for all."""
        if self.settings.max_model_len is None:
            return False
        limit = self._longest - self._drafts
        return any(row.start + row.tokens > limit for row in plan.rows)

    def _draft_passes(self, plan: StepPlan) -> int:
        """One wide pass always; the narrow ones only if some row can use drafts."""
        if plan.proposes > 1 and (
            (plan.settled and self.settled.any_can_use_drafts()) or any(map(self._can_use_drafts, plan.rows))
        ):
            return self.passes(plan.proposes)
        return 1

    @staticmethod
    def _can_use_drafts(scheduled: Scheduled) -> bool:
        row = scheduled.row
        return scheduled.start + scheduled.tokens >= row.known_tokens and row.end_tokens - row.known_tokens > 1

    def upcoming(self, plan: StepPlan) -> tuple[Ints, Ints]:
        """Accepted runs and tokens left of the round that the step's choice is for, as nobody could know them."""
        accepted: list[int] = []
        left: list[int] = []
        this_step = self.scheduler.drafts_first
        if plan.settled and self._varying is not None:
            accepted, left = self._varying.upcoming(next_round=this_step)
        for row, tokens, start, drafts, decodes in plan.rows:
            if start + tokens >= row.known_tokens:
                position = row.position
                kept = min(self._accepted[position], drafts) if decodes else 0
                commits = 0 if this_step else kept + 1
                to_go = row.end_tokens - row.known_tokens - commits
                if to_go > 0:
                    accepted.append(self._accepted[position + commits])
                    left.append(to_go)
        return np.array(accepted, dtype=np.int64), np.array(left, dtype=np.int64)

    def _observe(self, plan: StepPlan) -> None:
        """Tell the policy what the rounds of this step showed."""
        rounds = accepted = rejections = 0
        if plan.settled and self._varying is not None:
            rounds, accepted, rejections = self._varying.outcome()
        for row, _, _, drafts, decodes in plan.rows:
            if decodes and drafts and not row.dummy_drafts:
                kept = min(self._accepted[row.position], drafts)
                rounds += 1
                accepted += kept
                rejections += kept < drafts
        self.policy.observe(rounds, accepted, rejections)

    def commit(self, plan: StepPlan, step: int) -> tuple[int, list[Row]]:
        """End the step: accept drafts, commit tokens, propose anew, let finished requests go.

        Returns the tokens committed, first tokens included, and the finished rows in running order.
        """
        committed = 0
        finished: list[Row] = []
        if self.policy.observes:
            self._observe(plan)
        if plan.settled:
            committed, finished = self.commit_rounds()
            if plan.dummy_proposals:
                self._give_placeholders()
        if self._varying is not None:
            self._varying.propose(plan.proposes)
        if plan.rows:
            done = []
            for scheduled in plan.rows:
                committed += self._commit_row(scheduled, plan, step)
                if scheduled.row.known_tokens >= scheduled.row.end_tokens:
                    done.append(scheduled.row)
            if done:
                self._drop(done)
                finished += done
        if self.scheduler.running:
            self._settle_rows(plan.proposes, step)
        return committed, finished

    def _give_placeholders(self) -> None:
        """Rule 20 for the settled rows: nothing was proposed to them either, so their next drafts are placeholders."""
        rows = self.scheduler.release_settled()
        for row in rows:
            row.dummy_drafts = True
            row.pending_drafts = self._drafts
        self.scheduler.running[:0] = rows

    def _commit_row(self, scheduled: Scheduled, plan: StepPlan, step: int) -> int:
        row, tokens, start, drafts, decodes = scheduled
        computed = start + tokens
        if computed < row.known_tokens:  # rule 5: an unfinished prompt commits nothing and gets no drafts
            row.computed_tokens = computed
            return 0
        left = row.end_tokens - row.known_tokens
        position = row.position
        accepted = 0
        if drafts and decodes and (self._accept_dummies or not row.dummy_drafts):
            accepted = min(self._accepted[position], drafts)
        if drafts:
            row.num_drafts += 1
            row.draft_tokens += drafts
            row.accepted_tokens += accepted
            row.draft_tokens_cut += max(0, accepted - left)
        committed = min(accepted + 1, left)  # rule 22
        if decodes:
            row.rounds += 1
            self.rounds.one_round(position, drafts, accepted, left)
            self.committed_by_rounds += committed
        else:
            row.emitted = True
            if drafts:  # rule 17: placeholders beside a prompt's last token
                self.rounds.placeholders(drafts)
        row.known_tokens += committed
        row.computed_tokens = row.known_tokens - 1
        row.dummy_drafts = plan.dummy_proposals
        if plan.dummy_proposals:
            row.pending_drafts = self._drafts
        else:
            row.pending_drafts = self._proposed(row, plan.proposes)
        if row.first_token_step < 0:
            row.first_token_step = step
        return committed

    def _proposed(self, row: Row, most: int) -> int:
        """Drafts that the drafter proposes for a row's next round; a look-up proposes none past `max_model_len`."""
        if self._drafted is None:
            return most
        return min(self._drafted[row.position], most, self._longest - row.known_tokens)

    def _drop(self, done: list[Row]) -> None:
        """Rule 9: blocks of finished requests are free in the next step."""
        scheduler = self.scheduler
        gone = {id(row) for row in done}
        scheduler.running = [row for row in scheduler.running if id(row) not in gone]
        for row in done:
            row.pending_drafts = 0
            scheduler.blocks.release(row)

    def _settle_rows(self, proposes: int, step: int) -> None:
        """Move the first running rows that decode with a full set of drafts into the arrays."""
        running = self.scheduler.running
        count = 0
        for row in running:
            if not self._has_settled(row, proposes):
                break
            count += 1
        if count:
            rows = running[:count]
            del running[:count]
            for row in rows:
                self.segments.switch(row, Phase.DECODE, step + 1)
                self.scheduler.blocks.held_by_rows -= row.blocks
            self.settled.add(rows)

    def _has_settled(self, row: Row, proposes: int) -> bool:
        """A row that this step left out would be left out again: it stays where it is."""
        return (
            row.can_settle
            and row.decodes
            and not row.dummy_drafts
            and row.pending_drafts == self._proposed(row, proposes)
            and (row.phase == Phase.DECODE or row.phase == Phase.PREFILL)
        )
