"""The papers' engine: a batch is filled once, runs until all have finished, and only then the next one starts."""

from __future__ import annotations

from .residents import Residents
from .rows import Row, Scheduled, StepPlan
from .settings import UNLIMITED


class FixedBatchScheduler(Residents):
    """Static batching: finished requests leave the pass, nobody joins it.

    A batch takes up to `max_num_seqs` waiting requests, prefilled whole in one step. Blocks for their whole length are
    reserved at the start, so that nothing is ever preempted. Token budgets do not apply.
    """

    def fits(self, prompt_tokens: int, end_tokens: int) -> bool:
        """Whether a request can ever run; its prompt is always one step."""
        return self.blocks.fits(end_tokens)

    def schedule(self) -> StepPlan:
        """Plan one step: a round of every resident, or the prefill of the next batch."""
        plan = StepPlan()
        if not self.num_running():
            self._start_batch(plan)
            return plan
        plan.settled = self.settled.count
        for row in self.running:
            tokens = row.known_tokens + row.pending_drafts - row.computed_tokens
            self._take(row, tokens, plan)
        return plan

    def rounds_ahead(self) -> int:
        """Steps that can only be whole rounds of all residents, until one finishes."""
        if self.running or not self.settled.count:
            return 0
        return self.settled.rounds_ahead(UNLIMITED)  # all blocks are reserved already

    def _start_batch(self, plan: StepPlan) -> None:
        reserved = 0
        while self.waiting and len(self.running) < self.settings.max_num_seqs:
            row = self.waiting[0]
            reserved += self.blocks.most_needed(row.end_tokens)
            if reserved > self.blocks.usable:
                break
            self.waiting.popleft()
            row.computed_tokens = min(row.cached_tokens, row.known_tokens - 1)
            self.running.append(row)
            plan.admitted.append(row)
            self._take(row, row.known_tokens - row.computed_tokens, plan)

    def _take(self, row: Row, tokens: int, plan: StepPlan) -> None:
        self.blocks.extend(row, tokens, self.blocks.usable)
        start = row.computed_tokens
        plan.rows.append(Scheduled(row, tokens, start, max(0, start + tokens - row.known_tokens), row.decodes))
