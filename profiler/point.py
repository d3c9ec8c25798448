"""What is measured, by name: a phase and the shape of a batch in the grammar `16q4s1k`.

`16q4s1k` is 16 requests with 4 query tokens each after 1024 computed tokens. `q4` without `s` starts at 0, a count of 1
may be left out, groups are joined by `_`: `q512_16q4s1k` is a prompt chunk beside 16 decodes.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

from .errors import ProfileError

MOST_VERIFIED = 16  # rows of a request that verifies drafts
_GROUP = re.compile(r"(\d*)q(\d+)(k?)(?:s(\d+)(k?))?")


class Group(NamedTuple):
    """Requests of one shape: how many, query tokens of each, and computed tokens before them."""

    count: int  # type: ignore[assignment]  # hides the tuple's own method
    query: int
    context: int

    @property
    def rows(self) -> int:
        """Rows of the batch."""
        return self.count * self.query

    @property
    def is_chunk(self) -> bool:
        """Prompt chunks: they start at 0, or are longer than any verification."""
        return not self.context or self.query > MOST_VERIFIED

    @property
    def logit_rows(self) -> int:
        """Rows that need logits: all of a decode, the last of a prompt chunk."""
        return self.count if self.is_chunk else self.rows


@cache
def parse_spec(spec: str) -> tuple[Group, ...]:
    """The groups of a batch. Raises ProfileError."""
    groups = []
    for part in spec.split("_"):
        found = _GROUP.fullmatch(part)
        count, query = (int(found[1] or 1), int(found[2]) * _thousand(found[3])) if found else (0, 0)
        if found is None or not count or not query:
            rule = "a batch is written like 16q4s1k or q512_8q2s128"
            raise ProfileError("specsim profile", "spec", f"{spec!r} is no batch", rule, "mend it")
        groups.append(Group(count, query, int(found[4] or 0) * _thousand(found[5])))
    return tuple(groups)


def spec_of(*groups: Group) -> str:
    """The canonical name of a batch."""
    return "_".join(_group_name(*group) for group in groups)


def batch_spec(count: int, query: int, context: int = 0) -> str:
    """The name of a batch of one shape."""
    return _group_name(count, query, context)


def _group_name(count: int, query: int, context: int) -> str:
    head = f"{count if count > 1 else ''}q{_short(query)}"
    return f"{head}s{_short(context)}" if context else head


def _short(number: int) -> str:
    return f"{number // 1024}k" if number and number % 1024 == 0 else str(number)


def _thousand(suffix: str) -> int:
    return 1024 if suffix else 1


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement.

    mode: how it is launched, `graph` or `eager`. layers: depth of the target where it is not the whole model.
    value: what else a phase needs (acceptance of a live loop). repeat: 0, or which further pass over the same point.
    """

    phase: str
    spec: str
    mode: str = "eager"
    layers: int = 0
    value: float = 0.0
    repeat: int = 0

    @property
    def groups(self) -> tuple[Group, ...]:
        """The batch."""
        return parse_spec(self.spec)

    @property
    def group(self) -> Group:
        """The batch of a point that has one shape."""
        (only,) = self.groups
        return only

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return sum(group.rows for group in self.groups)

    @property
    def name(self) -> str:
        """As it is shown: `attention 16q4s1k graph`."""
        depth = f" {self.layers} layers" if self.layers else ""
        again = f" (again {self.repeat})" if self.repeat else ""
        return f"{self.phase} {self.spec} {self.mode}{depth}{again}"

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def point_key(point: Point, digest: str) -> str:
    """The content of a measurement as 16 hexadecimal digits; digest: that of models, dtype, backend and device."""
    text = json.dumps([digest, point.document()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
