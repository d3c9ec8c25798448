"""The kinds of acceptance that a slice can state: numbers of a dashboard or a log, logs themselves, profiles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .calibration import Part
from .numbers import DraftLength, Fraction, NonNegative, Number, Text


class Iid(Part):
    """Every draft token is accepted with probability `alpha`, independently of all others."""

    kind: Literal["iid"]
    alpha: Fraction


class Rate(Part):
    """A dashboard's accepted / drafted tokens (a fraction) at `num_speculative_tokens`, solved for an iid alpha."""

    kind: Literal["rate"]
    acceptance_rate: Fraction
    num_speculative_tokens: Annotated[DraftLength, Field(ge=1)]


class AcceptanceLength(Part):
    """A dashboard's mean acceptance length (bonus token included) at `num_speculative_tokens`, solved for alpha."""

    kind: Literal["length"]
    acceptance_length: Annotated[Number, Field(ge=1)]
    num_speculative_tokens: Annotated[DraftLength, Field(ge=1)]


class Memory(Part):
    """A stationary AR(1) on the logit per output position: correlation `phi`, standard deviation `sd`."""

    phi: Annotated[Number, Field(ge=0, lt=1)]
    sd: Annotated[NonNegative, Field(le=10)]


class PerPosition(Part):
    """Acceptance by draft position, as pooled from a log at `fitted_k` (default: the vector's length).

    Give `conditional` (P accepted, given all before were) or `unconditional` (vLLM's per-position rates), not both.
    `sigma` is the standard deviation of a request's shift on the logit.
    """

    kind: Literal["per_position"]
    conditional: Annotated[list[Fraction], Field(min_length=1, max_length=64)] | None = None
    unconditional: Annotated[list[Fraction], Field(min_length=1, max_length=64)] | None = None
    fitted_k: Annotated[DraftLength, Field(ge=1)] | None = None
    sigma: Annotated[NonNegative, Field(le=10)] = 0.0
    memory: Memory | None = None


class Ngram(Part):
    """A look-up drafter: matches that come and go, and runs of accepted tokens in what a match proposes.

    `match_after_match`, `match_after_none`: share of look-ups that find a match, after one that did and one that did
    not. `conditional`: acceptance by draft position, given a match. `proposed`: share of matches that propose at least
    1, 2, .. tokens (default: always as many as asked for). All as pooled from a log at `fitted_k` (default: the
    vector's length). `sigma` is the standard deviation of a request's shift on the logit.
    """

    kind: Literal["ngram"]
    match_after_match: Fraction
    match_after_none: Fraction
    conditional: Annotated[list[Fraction], Field(min_length=1, max_length=64)]
    proposed: Annotated[list[Fraction], Field(min_length=1, max_length=64)] | None = None
    fitted_k: Annotated[DraftLength, Field(ge=1)] | None = None
    sigma: Annotated[NonNegative, Field(le=10)] = 0.0


class Replay(Part):
    """Recorded sequences of a log, one drawn for each request; `task` keeps the sequences of one category."""

    kind: Literal["replay"]
    path: Text
    task: Text | None = None


class Named(Part):
    """A shipped acceptance profile by name, or the file of one; `task` is one of its tasks (default: all together)."""

    kind: Literal["named"]
    name: Text
    task: Text | None = None


Acceptance = Annotated[
    Iid | Rate | AcceptanceLength | PerPosition | Ngram | Replay | Named, Field(discriminator="kind")
]
