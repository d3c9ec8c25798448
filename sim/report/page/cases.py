"""What a figure is made of: one result, or one for each cell that the reader can pick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .result_arms import WHOLE, scopes

Document = dict[str, Any]
Choice = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cases:
    """Results by the options that choose them. keys: the controls of these options, in their order; () for one result.

    documents: `arms`, `comparison` and `scenario` of a result.
    """

    keys: tuple[str, ...]
    documents: Mapping[Choice, Document]

    def __iter__(self) -> Iterator[tuple[Choice, Document]]:
        return iter(self.documents.items())

    def any(self) -> Document:
        """One of the results, for what is alike in all."""
        return next(iter(self.documents.values()))

    def arms(self) -> list[str]:
        """Every arm of any result, the baseline first."""
        return list(dict.fromkeys(name for document in self.documents.values() for name in document["arms"]))

    def scopes(self) -> list[str | None]:
        """None for the whole workload, then the slices of any result, where there are several."""
        return list(dict.fromkeys(scope for document in self.documents.values() for scope in scopes(document)))

    def scope_labels(self) -> list[str]:
        """What a reader picks among."""
        return [WHOLE if scope is None else scope for scope in self.scopes()]


def single(document: Document) -> Cases:
    """One result."""
    return Cases((), {(): document})


def has_scope(document: Document, scope: str | None) -> bool:
    """Whether a result has numbers of a slice; the whole workload always has."""
    return scope is None or scope in document["arms"]["baseline"].get("slices", {})


def texts(values: Sequence[Any]) -> list[str]:
    """Values of an axis as options to pick: numbers plain, anything else as it was written."""
    return [
        f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        for value in values
    ]
