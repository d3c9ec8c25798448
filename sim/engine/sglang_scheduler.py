"""SGLang's scheduler as rules: prefill batches of their own come first, decodes wait for them.

The comments number the rules of `docs/method.md` (S1 to S10). No clock, no cost, no chance.
"""

from __future__ import annotations

from .new_token_ratio import NewTokenRatio
from .prefix_blocks import BlockContent
from .residents import Residents
from .rows import Preempted, Row, Scheduled, StepPlan
from .settings import UNLIMITED, EngineSettings
from .settled import SettledRows
from .sglang_limits import SglangLimits

CLIP_MAX_NEW_TOKENS = 4096  # of a request's remaining output, admission looks no further


class PrefillRoom:
    """What a prefill batch may still take (S3); tokens are charged in whole pages."""

    __slots__ = ("_page", "chunk_tokens", "input_tokens")

    def __init__(self, limits: SglangLimits, page_size: int) -> None:
        self._page = page_size
        self.chunk_tokens = limits.chunked_prefill_size
        self.input_tokens = limits.max_prefill_tokens

    def open(self) -> bool:
        """Whether any request can still join."""
        return self.input_tokens > 0 and (self.chunk_tokens is None or self.chunk_tokens > 0)

    def tokens_of(self, wanted: int, *, first: bool) -> int:
        """How many of `wanted` tokens the batch takes; 0 if the request does not join. first: nobody joined before."""
        paged = self._paged(wanted)
        if self.chunk_tokens is None:
            return wanted if first or paged < self.input_tokens else 0
        return wanted if paged <= self.chunk_tokens else self.chunk_tokens // self._page * self._page

    def take(self, tokens: int) -> None:
        """Pay for the tokens of one request."""
        paged = self._paged(tokens)
        self.input_tokens -= paged
        if self.chunk_tokens is not None:
            self.chunk_tokens -= paged

    def _paged(self, tokens: int) -> int:
        return -(-tokens // self._page) * self._page


class SglangScheduler(Residents):
    """One replica: a step is a prefill batch while one can be formed, else a round of every resident."""

    drafts_first = True

    def __init__(self, settings: EngineSettings, settled: SettledRows, content: BlockContent | None = None) -> None:
        super().__init__(settings, settled, content)
        self._limits = settings.sglang or SglangLimits()
        self._drafts = settings.num_speculative_tokens
        self._page = settings.block_size
        self._ratio = NewTokenRatio(self._limits.schedule_conservativeness)
        self._unfinished: Row | None = None  # its prompt goes on in the next prefill batch
        self._full_at = UNLIMITED  # residents when the last admission failed; with fewer it is tried again
        self._single_decode_steps = 0  # decode steps without settled rows, which count their own

    def fits(self, prompt_tokens: int, end_tokens: int) -> bool:
        """Whether a request can ever run: alone, it must pass admission (S5) whenever it is retracted."""
        if not self.blocks.limited:
            return True
        return end_tokens + self._page < self.blocks.usable * self._page and self.blocks.fits(end_tokens)

    def schedule(self) -> StepPlan:
        """Plan one step (S1): a prefill batch, or else a round of all."""
        plan = StepPlan()
        if not self.num_running():
            self._ratio.reset(self._decode_steps())
        if self._unfinished is None:
            self._set_slots_aside(plan)
        if not plan.preempted:
            self._form_prefill_batch(plan)
        if plan.rows:
            plan.paused = [row for row in self.running if row.decodes]
        else:
            self._form_decode_batch(plan)
        return plan

    def rounds_ahead(self) -> int:
        """Steps that can only be rounds of all settled rows, until one finishes or a request comes."""
        if self.running or not self.settled.count or (self.waiting and not self._is_full()):
            return 0
        return self.settled.rounds_within(self._left_blocks() if self.blocks.limited else UNLIMITED)

    # --- decodes ------------------------------------------------------------------------------------------------------

    def _form_decode_batch(self, plan: StepPlan) -> None:
        """S8: every resident verifies a full set of drafts, those that end in this round too."""
        plan.settled = self.settled.count
        for row in self.running:
            plan.rows.append(Scheduled(row, 1 + self._drafts, row.computed_tokens, self._drafts, True))
        if not plan.settled:
            self._single_decode_steps += 1

    def _decode_steps(self) -> int:
        return self.settled.rounds_run + self._single_decode_steps

    def _left_blocks(self) -> int:
        """Blocks that single rows leave to the settled ones."""
        return self.blocks.usable - self.blocks.held_by_rows

    def _set_slots_aside(self, plan: StepPlan) -> None:
        """S6: all residents get the slots of their next round; if there are too few, some are retracted."""
        growth = self._growth(self.running)
        left = self._left_blocks() - growth
        if self.settled.blocks_bound() > left and self.settled.blocks_needed() > left:
            self.running[:0] = self.release_settled()
            self._retract(plan)
        for row in self.running:
            self.blocks.extend(row, 1 + self._drafts, UNLIMITED)

    def _growth(self, rows: list[Row]) -> int:
        needed = (self.blocks.for_row(row.computed_tokens, 1 + self._drafts) - row.blocks for row in rows)
        return sum(max(0, blocks) for blocks in needed)

    def _retract(self, plan: StepPlan) -> None:
        """S7: with drafts the latest go, else those with the fewest output tokens, the longest prompt first."""
        order = list(self.running)
        if not self._drafts:
            order.sort(key=lambda row: (row.known_tokens - row.prompt_tokens, -row.prompt_tokens), reverse=True)
        while self._growth(order) > self._left_blocks():
            victim = order.pop()
            plan.preempted.append(Preempted(victim, victim.computed_tokens, victim.pending_drafts))
            self.blocks.release(victim)
            victim.computed_tokens = victim.pending_drafts = 0
            victim.preemptions += 1
            self.waiting.append(victim)
        gone = {id(one.row) for one in plan.preempted}
        self.running = [row for row in self.running if id(row) not in gone]
        self._ratio.after_retraction(self.running, self._decode_steps())

    # --- prefill ------------------------------------------------------------------------------------------------------

    def _is_full(self) -> bool:
        return self.num_running() >= self._full_at

    def _form_prefill_batch(self, plan: StepPlan) -> None:
        """S2: the prompt that was cut goes on, then waiting requests join, first come, first served."""
        room = PrefillRoom(self._limits, self._page)
        row = self._unfinished
        if row is not None:
            self._unfinished = None
            tokens = room.tokens_of(row.known_tokens - row.computed_tokens, first=True)
            self._prefill(row, self._whole_rounds(row, tokens), plan, room)
        if self.waiting and (plan.rows or not self._is_full()):
            self._full_at = UNLIMITED
            self._admit(plan, room)

    def _admit(self, plan: StepPlan, room: PrefillRoom) -> None:
        """S4 and S5: the first that does not fit ends admission; no place or no slots end it until somebody leaves."""
        free = self._expected_free_tokens(plan) if self.blocks.limited else float(UNLIMITED)
        while self.waiting and room.open():
            row = self.waiting[0]
            needed = self._page + row.known_tokens + _expected_output(row)
            blocks = self._blocks_of_prompt(row)
            if self.num_running() >= self.settings.max_num_seqs or needed >= free or not self._suffices(blocks):
                self._full_at = self.num_running()
                break
            row.computed_tokens = min(row.cached_tokens, row.known_tokens - 1)
            tokens = room.tokens_of(row.known_tokens - row.computed_tokens, first=not plan.rows)
            tokens = self._whole_rounds(row, tokens)
            if not tokens:
                break
            self.waiting.popleft()
            self.blocks.give(row, blocks)
            (plan.resumed if row.preemptions else plan.admitted).append(row)
            self.running.append(row)
            self._prefill(row, tokens, plan, room)
            free -= needed

    def _expected_free_tokens(self, plan: StepPlan) -> float:
        """S5: free slots, less the share of their remaining output that the running requests are expected to use.

        A prompt that goes on in this batch counts like one that joins it: with all of its output.
        """
        free = (self._left_blocks() - self.settled.blocks_needed()) * self._page
        going_on = [one.row for one in plan.rows]
        free -= sum(self._page + _expected_output(row) for row in going_on)
        expected = self.settled.tokens_left(CLIP_MAX_NEW_TOKENS)
        expected += sum(_expected_output(row) for row in self.running if row not in going_on)
        return free - expected * self._ratio.at(self._decode_steps())

    def _blocks_of_prompt(self, row: Row) -> int:
        """Blocks of all known tokens, and of the first round where one follows."""
        if row.end_tokens - row.known_tokens <= 1:
            return self.blocks.for_tokens(row.known_tokens)
        return self.blocks.for_row(row.known_tokens, 1 + self._drafts)

    def _suffices(self, blocks: int) -> bool:
        left = self._left_blocks() - blocks
        return self.settled.blocks_bound() <= left or self.settled.blocks_needed() <= left

    @staticmethod
    def _whole_rounds(row: Row, tokens: int) -> int:
        """A resumed request never keeps just its last token for another batch: that would look like a decode."""
        rest = row.known_tokens - row.computed_tokens - tokens
        return tokens - 1 if tokens and rest == 1 and row.known_tokens > row.prompt_tokens else tokens

    def _prefill(self, row: Row, tokens: int, plan: StepPlan, room: PrefillRoom) -> None:
        plan.rows.append(Scheduled(row, tokens, row.computed_tokens, 0, False))
        room.take(tokens)
        if row.computed_tokens + tokens < row.known_tokens:
            self._unfinished = row


def _expected_output(row: Row) -> int:
    return min(row.end_tokens - row.known_tokens, CLIP_MAX_NEW_TOKENS)
