"""One resident request (a row of the batch) and the plan of one step."""

from __future__ import annotations

from typing import NamedTuple

from .records import Phase


class Row:
    """A request inside one replica: what the scheduler knows of it, and what the records will say of it.

    known_tokens: prompt + committed. computed_tokens: those whose KV is in place (a decode has known - 1). end_tokens:
    known tokens at which it is finished. pending_drafts: proposed, to be verified in its next step; `dummy_drafts` says
    that they are placeholders which nothing accepts. blocks: KV blocks held. cached_tokens: prompt tokens that a prefix
    hit saves. flat_offset: where its output position 0 lies in the acceptance arrays. emitted: its current prefill has
    given its token. settled_round: count of settled rounds when it settled. priority: smaller is served first, then by
    arrival. With a prefix cache, block_ids: blocks it holds; hits: those it found; published: those others can find.
    """

    __slots__ = (
        "accepted_tokens",
        "arrival",
        "block_ids",
        "blocks",
        "cached_tokens",
        "can_settle",
        "computed_tokens",
        "draft_tokens",
        "draft_tokens_cut",
        "dummy_drafts",
        "emitted",
        "end_tokens",
        "first_scheduled_step",
        "first_token_step",
        "flat_offset",
        "hits",
        "known_tokens",
        "num_drafts",
        "own_prefill_ms",
        "pending_drafts",
        "phase",
        "phase_since",
        "preemptions",
        "prefill_passes",
        "priority",
        "prompt_tokens",
        "published",
        "request",
        "rounds",
        "settled_round",
    )

    def __init__(self, request: int, prompt_tokens: int, end_tokens: int, cached_tokens: int, flat_offset: int) -> None:
        self.request = request
        self.prompt_tokens = prompt_tokens
        self.end_tokens = end_tokens
        self.cached_tokens = cached_tokens
        self.flat_offset = flat_offset
        self.known_tokens = prompt_tokens
        self.computed_tokens = 0
        self.pending_drafts = 0
        self.dummy_drafts = False
        self.blocks = 0
        self.priority = self.arrival = 0
        self.block_ids: list[int] = []
        self.hits: list[int] = []
        self.published = 0
        self.can_settle = True
        self.settled_round = 0
        self.emitted = False
        self.phase = Phase.PREFILL
        self.phase_since = -1
        self.first_scheduled_step = -1
        self.first_token_step = -1
        self.preemptions = 0
        self.prefill_passes = 0
        self.rounds = 0
        self.num_drafts = 0
        self.draft_tokens = 0
        self.accepted_tokens = 0
        self.draft_tokens_cut = 0
        self.own_prefill_ms = 0.0

    @property
    def position(self) -> int:
        """Where its next output token lies in the acceptance arrays."""
        return self.flat_offset + self.known_tokens - self.prompt_tokens

    @property
    def decodes(self) -> bool:
        """All known tokens but the last are computed and the prompt is done: its next step is a round."""
        return self.computed_tokens == self.known_tokens - 1 and self.computed_tokens >= self.prompt_tokens


class Scheduled(NamedTuple):
    """A row's part of a step: `tokens` from position `start`; `drafts` of them are verified drafts."""

    row: Row
    tokens: int
    start: int
    drafts: int
    decodes: bool


class Preempted(NamedTuple):
    """What a victim lost; its committed tokens stay."""

    row: Row
    computed_tokens: int
    pending_drafts: int


class StepPlan:
    """What one step computes: first all settled rows (a round each, all drafts), then `rows` in order.

    proposes: the most drafts that each request of the step proposes at its end. dummy_proposals: they are placeholders.
    left_out: residents that the step does not reach; paused: decodes that wait for a prefill batch, beside all settled
    rows.
    """

    __slots__ = (
        "admitted",
        "draft_passes",
        "dummy_proposals",
        "left_out",
        "paused",
        "preempted",
        "proposes",
        "resumed",
        "rows",
        "settled",
    )

    def __init__(self) -> None:
        self.settled = 0
        self.rows: list[Scheduled] = []
        self.left_out: list[Row] = []
        self.paused: list[Row] = []
        self.preempted: list[Preempted] = []
        self.admitted: list[Row] = []
        self.resumed: list[Row] = []
        self.proposes = 0
        self.draft_passes = 0
        self.dummy_proposals = False
