"""vLLM's scheduler as rules: who runs in the next step, with how many tokens, drafts and blocks.

The comments number the rules of `docs/method.md`. No clock, no cost, no chance: the same calls give the same plan, so
that recorded commits of a real engine can be replayed through it.
"""

from __future__ import annotations

from .prefix_blocks import BlockContent
from .residents import Residents
from .rows import Preempted, Row, Scheduled, StepPlan
from .settings import UNLIMITED, EngineSettings
from .settled import SettledRows
from .waiting import urgency


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

    def give_back(self, tokens: int) -> None:
        """A row of `tokens` tokens is withdrawn."""
        self.take(-tokens, -1)


class VllmScheduler(Residents):
    """Iteration-level scheduling of one replica: continuous batching with chunked prefill and preemption."""

    def __init__(self, settings: EngineSettings, settled: SettledRows, content: BlockContent | None = None) -> None:
        super().__init__(settings, settled, content)
        self._drafts = settings.num_speculative_tokens
        self._by_priority = settings.scheduling_policy == "priority"
        self._pads = self._drafts if settings.pads_single_tokens and settings.draft_schedule is None else 0
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
            budgets.take(rounds + self.settled.draft_tokens(), rounds)
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
        if rows > self._most_rounds and not self._pays_for(rows + settled.draft_tokens(), rows):
            return 0
        limit = blocks.usable - blocks.held_by_rows
        if self._by_priority and self.running:  # whoever lacks a block may take it from any other row
            limit -= sum(self._most_lacking(row) for row in self.running)
        if settled.blocks_bound() > limit and settled.blocks_needed() > limit:
            return 0
        return rows

    def _pays_for(self, tokens: int, rows: int) -> bool:
        """Whether the budgets of one step pay for rows of so many tokens in all."""
        settings = self.settings
        return (
            tokens <= settings.max_num_scheduled_tokens
            and tokens + rows * settings.draft_slots <= settings.max_num_batched_tokens
        )

    def _most_lacking(self, row: Row) -> int:
        return max(0, self.blocks.for_row(row.computed_tokens, self._wanted(row)) - row.blocks)

    def free_blocks(self) -> int:
        """Blocks free while a step is planned: settled rows have been given theirs."""
        return self.blocks.usable - self.blocks.held_by_rows - self.settled.blocks_needed()

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
            while not self.blocks.extend(row, tokens, self.free_blocks()):
                victim = self._victim()
                index -= self._withdraw(victim, plan, budgets)
                self._preempt(victim, plan)
                if victim is row:
                    plan.left_out = self.running[index:]
                    return
            self._take(row, tokens, plan, budgets)
            index += 1
        plan.left_out = self.running[index:]

    def _victim(self) -> Row:
        """Rule 10: the latest admitted, or the least urgent one."""
        return max(self.running, key=urgency) if self._by_priority else self.running[-1]

    def _withdraw(self, victim: Row, plan: StepPlan, budgets: Budgets) -> int:
        """Take a victim out of the running list and out of the step; 1 if the step had scheduled it already."""
        self.running.remove(victim)
        for place, scheduled in enumerate(plan.rows):
            if scheduled.row is victim:
                del plan.rows[place]
                budgets.give_back(scheduled.tokens)
                victim.pending_drafts = 0  # they went into the step
                return 1
        return 0

    def _preempt(self, victim: Row, plan: StepPlan) -> None:
        """Rule 11: all blocks, computed tokens and drafts are lost; it goes to its place at the head of the queue."""
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
        self.blocks.publish(row, start + tokens)
        budgets.take(tokens)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _admit(self, plan: StepPlan, budgets: Budgets) -> None:
        """Rule 4: first come, first served; the first one that does not fit ends admission."""
        may_pad = bool(self._pads) and all(scheduled.decodes for scheduled in plan.rows)
        any_runs = bool(plan.settled or plan.rows)
        while self.waiting and budgets.open() and self.num_running() < self.settings.max_num_seqs:
            row = self.waiting[0]
            row.computed_tokens = self.blocks.find_cached(row)
            tokens, room = self._wanted(row), budgets.room()
            if may_pad and (any_runs or row.computed_tokens) and self._pads_to_a_round(row):
                tokens = 1 + self._pads
                if tokens > room:
                    break
            if tokens > room:
                if not self.settings.enable_chunked_prefill:
                    break
                tokens = room
            first_chunk = self.blocks.for_row(row.computed_tokens, tokens)
            if not self._admission_fits(row, first_chunk):
                break
            self.waiting.popleft()
            self.blocks.admit(row)
            self.blocks.give(row, first_chunk)
            (plan.resumed if row.preemptions else plan.admitted).append(row)
            self._take(row, tokens, plan, budgets)
            self.running.append(row)

    def _pads_to_a_round(self, row: Row) -> bool:
        """Rule 17: a row with one token left to compute is filled up with placeholder drafts, to look uniform."""
        return row.computed_tokens == row.known_tokens - 1 and row.known_tokens + 1 + self._pads <= self._longest

    def _admission_fits(self, row: Row, first_chunk: int) -> bool:
        """Rules 6 to 8: the first chunk's blocks, the whole known sequence, and the watermark if anything runs."""
        blocks = self.blocks
        if not blocks.limited:
            return True
        needed = [first_chunk]
        if self.settings.scheduler_reserve_full_isl:
            needed.append(blocks.for_tokens(row.known_tokens))
        free = blocks.usable - blocks.held_by_rows - (blocks.watermark if self.num_running() else 0)
        # The exact count of the settled rows' blocks is taken only where the bound cannot tell.
        bound = self.settled.blocks_bound()
        return blocks.admits(row, needed, free - bound) or blocks.admits(
            row, needed, free - self.settled.blocks_needed()
        )
