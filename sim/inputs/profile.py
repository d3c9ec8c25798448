"""Acceptance profiles: laws of accepted draft tokens as files, whole and by task, with their provenance."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .acceptance_models import Memory
from .calibration import Models, Part, Provenance
from .numbers import Count, DraftLength, Fraction, NonNegative, Number, Positive

PROFILE_SCHEMA = "specsim-acceptance/1"
ALL_TASKS = "all"

Rates = Annotated[list[Fraction], Field(min_length=1, max_length=255)]
Spread = Annotated[NonNegative, Field(le=10)]


class LengthLink(Part):
    """Correlation of a request's shift with the standard score of its log output length."""

    correlation: Annotated[Number, Field(ge=-1, le=1)]
    median_tokens: Positive
    log_sd: Positive


class Observed(Part):
    """What the log itself shows: sizes, tokens a round, how requests differ, how rounds follow each other."""

    sequences: Count
    rounds: Count
    tokens_per_round: Positive
    request_sd: NonNegative
    length_correlation: Annotated[Number, Field(ge=-1, le=1)]
    autocorrelation: dict[str, Number]
    p10_rounds_per_128_tokens: Positive | None = None
    p90_rounds_per_128_tokens: Positive | None = None


class ChainLaw(Part):
    """A drafter that always proposes k tokens.

    conditional: by draft position, pooled over the rounds of a log at the profile's fitted_k. centre: the same at the
    centre of the spread, so that a simulated log returns `conditional`; left out, it is computed. observed: what the
    log shows; simulated: what a log of the law shows over outputs of the same lengths.
    """

    form: Literal["chain"]
    conditional: Rates
    centre: Rates | None = None
    sigma: Spread = 0.0
    memory: Memory | None = None
    length_link: LengthLink | None = None
    observed: Observed | None = None
    simulated: Observed | None = None


class LookupLaw(Part):
    """A look-up drafter; keys as those of acceptance `kind: ngram`, the centres as in `ChainLaw`."""

    form: Literal["ngram"]
    match_after_match: Fraction
    match_after_none: Fraction
    conditional: Rates
    proposed: Rates | None = None
    centre_match_after_match: Fraction
    centre_match_after_none: Fraction
    centre: Rates
    centre_proposed: Rates | None = None
    sigma: Spread = 0.0
    observed: Observed | None = None
    simulated: Observed | None = None


Law = Annotated[ChainLaw | LookupLaw, Field(discriminator="form")]


class AcceptanceProfile(Part):
    """The stored form. `laws` holds `all` and each task that the source tells apart, or the tasks alone.

    shape: what the drafter proposes, a chain of tokens, a tree (acceptance along the best branch: it does not carry
    over to a chain), or what a look-up finds. fitted_k: drafts per round (levels of a tree) in the source; None: they
    varied.
    """

    schema_: Literal["specsim-acceptance/1"] = Field(alias="schema")
    name: Annotated[str, Field(min_length=1)]
    kind: Literal["fitted", "published"]
    method: Annotated[str, Field(min_length=1)]
    shape: Literal["chain", "tree", "lookup"]
    fitted_k: Annotated[DraftLength, Field(ge=1)] | None = None
    provenance: Provenance
    models: Models
    laws: Annotated[dict[str, Law], Field(min_length=1, max_length=1000)]
