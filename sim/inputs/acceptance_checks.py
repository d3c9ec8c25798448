"""Rules of acceptance: who needs it, and what a dashboard can have shown."""

from __future__ import annotations

from collections.abc import Iterator

from .acceptance_models import Acceptance, AcceptanceLength, Ngram, PerPosition
from .parts import Parts
from .source import Finding


def acceptance_findings(parts: Parts) -> Iterator[Finding]:
    """Every slice has acceptance where something drafts, and each is one that can be."""
    for place, part in parts.slices.items():
        path = f"workload.slices.{place}.acceptance"
        if part.acceptance is None and parts.drafts > 0:
            rule = f"{parts.drafts} draft tokens are accepted with some probability"
            yield Finding(path, "is missing", rule, "add `acceptance: …` or remove `speculation`")
        elif part.acceptance is not None:
            yield from _possible(path, part.acceptance)


def _possible(path: str, acceptance: Acceptance) -> Iterator[Finding]:
    if isinstance(acceptance, AcceptanceLength):
        most = acceptance.num_speculative_tokens + 1
        if acceptance.acceptance_length > most:
            what = f"{acceptance.acceptance_length:g} with {most - 1} draft tokens"
            yield Finding(f"{path}.acceptance_length", what, f"at most {most}", "check both numbers")
    if isinstance(acceptance, PerPosition):
        yield from _per_position(path, acceptance)
    if isinstance(acceptance, Ngram):
        yield from _ngram(path, acceptance)


def _ngram(path: str, acceptance: Ngram) -> Iterator[Finding]:
    if acceptance.fitted_k is not None and len(acceptance.conditional) > acceptance.fitted_k:
        what = f"{acceptance.fitted_k} with {len(acceptance.conditional)} positions"
        rule = "a log at fitted_k shows no later position"
        remedy = f"give {len(acceptance.conditional)} or more, or fewer positions"
        yield Finding(f"{path}.fitted_k", what, rule, remedy)
    proposed = acceptance.proposed or []
    rises = [i for i, share in enumerate(proposed) if share > (proposed[i - 1] if i else 1.0)]
    if rises:
        rule = "shares of matches that propose at least 1, 2, .. tokens never rise"
        yield Finding(f"{path}.proposed.{rises[0]}", f"{proposed[rises[0]]:g} is too much", rule, "check the list")
    if proposed and proposed[0] != 1:
        rule = "every match proposes at least 1 token"
        yield Finding(f"{path}.proposed.0", f"{proposed[0]:g} of the matches", rule, "start the list with 1")


def _per_position(path: str, acceptance: PerPosition) -> Iterator[Finding]:
    conditional, unconditional = acceptance.conditional, acceptance.unconditional
    if conditional is not None and unconditional is not None:
        rule = "one follows from the other"
        yield Finding(f"{path}.unconditional", "is given beside conditional", rule, "keep one of them")
    vector = conditional if conditional is not None else unconditional
    if vector is None:
        rule = "per_position needs conditional or unconditional rates"
        yield Finding(f"{path}.conditional", "is missing", rule, "add one of them")
        return
    if acceptance.fitted_k is not None and len(vector) > acceptance.fitted_k:
        what = f"{acceptance.fitted_k} with {len(vector)} positions"
        rule = "a log at fitted_k shows no later position"
        yield Finding(f"{path}.fitted_k", what, rule, f"give {len(vector)} or more, or fewer positions")
    rises = [i for i in range(1, len(unconditional or ())) if unconditional and unconditional[i] > unconditional[i - 1]]
    if rises and unconditional:
        what = f"{unconditional[rises[0]]:g} after {unconditional[rises[0] - 1]:g}"
        rule = "unconditional rates never rise"
        yield Finding(f"{path}.unconditional.{rises[0]}", what, rule, "check it, or call the list conditional")
