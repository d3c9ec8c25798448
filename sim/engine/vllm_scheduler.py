"""vLLM's scheduler as rules: who runs in the next step, with how many tokens, drafts and blocks.

The comments number the rules of `docs/method.md`. No clock, no cost, no chance: the same calls give the same plan, so
that recorded commits of a real engine can be replayed through it.
"""

from __future__ import annotations

from .residents import Residents
from .rows import Preempted, Row, Scheduled, StepPlan
from .settings import UNLIMITED, EngineSettings
from .settled import SettledRows


class Budgets:
    """What a step may still schedule: a row of n tokens costs n of the token budget, n + slots of the input budget."""

    __slots__ = ("input_tokens", "slots", "tokens")

    def __init__(self, settings: EngineSettings) -> None:
        self.tokens = settings.max_num_scheduled_tokens
        self.input_tokens = settings.max_num_batched_tokens
        self.slots = settings.draft_slots

    def open(self) -> bool:
        """Whether any row can still be scheduled."""
        return self.tokens > 0 and self.input_tokens > self.slots

    def room(self) -> int:
        """The most tokens that one more row may take."""
        return min(self.tokens, self.input_tokens - self.slots)

    def take(self, tokens: int, rows: int = 1) -> None:
        """Pay for `rows` rows of `tokens` tokens in all."""
        self.tokens -= tokens
        self.input_tokens -= tokens + rows * self.slots


class VllmScheduler(Residents):
    """Iteration-level scheduling of one replica: continuous batching with chunked prefill and preemption."""

    def __init__(self, settings: EngineSettings, settled: SettledRows) -> None:
        super().__init__(settings, settled)
        self._drafts = settings.num_speculative_tokens
        self._longest = settings.longest
        self._threshold = self._longest
        # Rule 1 for decodes alone: how many whole rounds the budgets of a step pay for.
        tokens = 1 + self._drafts
        self._most_rounds = min(
            settings.max_num_scheduled_tokens // tokens,
            settings.max_num_batched_tokens // (tokens + settings.draft_slots),
        )
        self._rounds_alone = StepPlan()

    def fits(self, prompt_tokens: int, end_tokens: int) -> bool:
        """Whether a request can ever run, alone if it must.

        prompt_tokens: what it has to compute before its first token. Without chunked prefill that must fit into one
        step, and where blocks are limited the whole request must, which may be preempted just before its end.
        """
        if not self.settings.enable_chunked_prefill:
            most_at_once = end_tokens - 1 if self.blocks.limited else prompt_tokens
            if most_at_once > Budgets(self.settings).room():
                return False
        return self.blocks.fits(end_tokens)

    def schedule(self) -> StepPlan:
        """Plan one step: running requests first, then waiting ones unless something was preempted (rules 1 and 12).

        The plan is valid until the next call.
        """
        rounds = self._settled_rounds()
        if rounds and self.only_rounds():
            self._rounds_alone.settled = rounds
            return self._rounds_alone
        plan = StepPlan()
        budgets = Budgets(self.settings)
        self._threshold = self._long_prefill_threshold()
        if rounds:
            budgets.take(rounds * (1 + self._drafts), rounds)
            plan.settled = rounds
        elif self.settled.count:
            self.running[:0] = self.release_settled()
        if self.running:
            self._schedule_running(plan, budgets)
        if self.waiting and not plan.preempted:
            self._admit(plan, budgets)
        return plan

    def only_rounds(self) -> bool:
        """Whether a step that gives every settled row its round can contain nothing else."""
        return not self.running and (not self.waiting or self.settled.count >= self.settings.max_num_seqs)

    def rounds_ahead(self) -> int:
        """Steps that can only be whole rounds of all settled rows, until one finishes or a request comes."""
        if not self.only_rounds() or not 0 < self.settled.count <= self._most_rounds:
            return 0
        blocks = self.blocks
        return self.settled.rounds_ahead(blocks.usable - blocks.held_by_rows if blocks.limited else UNLIMITED)

    # --- settled rows: rule 1 where nothing can be cut and nobody preempted -------------------------------------------

    def _settled_rounds(self) -> int:
        """All settled rows, if budgets and blocks suffice for a whole round of every one of them; else 0."""
        settled, blocks = self.settled, self.blocks
        rows = settled.count
        if rows > self._most_rounds:
            return 0
        limit = blocks.usable - blocks.held_by_rows
        if settled.blocks_bound() > limit and settled.blocks_needed() > limit:
            return 0
        return rows

    def free_blocks(self) -> int:
        """Blocks free while a step is planned: settled rows have been given theirs."""
        return self.blocks.usable - self.blocks.held_by_rows - self.settled.blocks_needed()

    def _suffices(self, blocks: int) -> bool:
        """Whether so many blocks are free; the exact count is taken only where the bound cannot tell."""
        left = self.blocks.usable - self.blocks.held_by_rows - blocks
        return self.settled.blocks_bound() <= left or self.settled.blocks_needed() <= left

    # --- running ------------------------------------------------------------------------------------------------------

    def _long_prefill_threshold(self) -> int:
        """Rule 3: no threshold for a request that is alone; adaptive: at least its share of the input budget."""
        settings = self.settings
        threshold = settings.long_prefill_token_threshold
        if not threshold:
            return self._longest
        requests = self.num_running() + len(self.waiting)
        if requests == 1:
            return self._longest
        if settings.adaptive_long_prefill_threshold:
            threshold = max(threshold, settings.max_num_batched_tokens // requests)
        return threshold

    def _wanted(self, row: Row) -> int:
        """Rule 1: known tokens and drafts that are not computed yet, cut by the threshold and the model length."""
        wanted = row.known_tokens + row.pending_drafts - row.computed_tokens
        return min(wanted, self._threshold, self._longest - row.computed_tokens - 1)

    def _schedule_running(self, plan: StepPlan, budgets: Budgets) -> None:
        """Rules 1, 2 and 10: in the order of admission; a row that gets no blocks preempts until it fits."""
        index = 0
        while index < len(self.running) and budgets.open():
            row = self.running[index]
            tokens = min(self._wanted(row), budgets.room())
            if not self._extend_or_preempt(row, tokens, plan):
                break
            self._take(row, tokens, plan, budgets)
            index += 1
        plan.left_out = self.running[index:]

    def _extend_or_preempt(self, row: Row, tokens: int, plan: StepPlan) -> bool:
        """Rule 10: the victim is the latest admitted; False if the row itself is the one."""
        while not self.blocks.extend(row, tokens, self.free_blocks()):
            victim = self.running.pop()
            self._preempt(victim, plan)
            if victim is row:
                return False
        return True

    def _preempt(self, victim: Row, plan: StepPlan) -> None:
        """Rule 11: all blocks, computed tokens and drafts are lost; it goes to the head of the waiting queue."""
        plan.preempted.append(Preempted(victim, victim.computed_tokens, victim.pending_drafts))
        self.blocks.release(victim)
        victim.computed_tokens = 0
        victim.pending_drafts = 0
        victim.dummy_drafts = False
        victim.preemptions += 1
        self.waiting.appendleft(victim)

    def _take(self, row: Row, tokens: int, plan: StepPlan, budgets: Budgets) -> None:
        """Rule 2: what exceeds the known tokens are verified drafts; a cut removes drafts from the end."""
        start = row.computed_tokens
        drafts = max(0, start + tokens - row.known_tokens)
        plan.rows.append(Scheduled(row, tokens, start, drafts, row.decodes))
        budgets.take(tokens)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _admit(self, plan: StepPlan, budgets: Budgets) -> None:
        """Rule 4: first come, first served; the first one that does not fit ends admission."""
        while self.waiting and budgets.open() and self.num_running() < self.settings.max_num_seqs:
            row = self.waiting[0]
            row.computed_tokens = min(row.cached_tokens, row.known_tokens - 1)
            tokens, room = self._wanted(row), budgets.room()
            if tokens > room:
                if not self.settings.enable_chunked_prefill:
                    break
                tokens = room
            first_chunk = self.blocks.for_row(row.computed_tokens, tokens)
            if not self._admission_fits(row, first_chunk):
                break
            self.waiting.popleft()
            self.blocks.give(row, first_chunk)
            (plan.resumed if row.preemptions else plan.admitted).append(row)
            self._take(row, tokens, plan, budgets)
            self.running.append(row)

    def _admission_fits(self, row: Row, first_chunk: int) -> bool:
        """Rules 6 to 8: the first chunk's blocks, the whole known sequence, and the watermark if anything runs."""
        if not self.blocks.limited:
            return True
        spare = self.blocks.watermark if self.num_running() else 0
        needed = first_chunk
        if self.settings.scheduler_reserve_full_isl:
            needed = max(needed, self.blocks.for_tokens(row.known_tokens))
        return self._suffices(needed + spare)
