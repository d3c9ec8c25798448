"""Token counts as other tools write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..inputs.numbers import MAX_TOKENS

TOKEN_COUNT_RULE = f"a whole number from 1 to {MAX_TOKENS} is needed"
_WHOLE = re.compile(r"(\d{1,18})(?:\.0{0,18})?", re.ASCII)  # more digits cannot be in range; Python refuses thousands


def token_count(cell: Any) -> int | None:
    """The whole number of tokens that text or a JSON number says (374 and 374.0), or None where it breaks the rule."""
    if type(cell) is str:
        return _written(cell)
    value = int(cell) if type(cell) is float and cell.is_integer() else cell
    return value if type(value) is int and 1 <= value <= MAX_TOKENS else None


def token_counts(cells: Sequence[Any]) -> list[int | None]:
    """`token_count` of every cell."""
    return list(map(_written if set(map(type, cells)) == {str} else token_count, cells))


@lru_cache(maxsize=1 << 16)  # lengths repeat
def _written(text: str) -> int | None:
    digits = _WHOLE.fullmatch(text.strip())
    value = int(digits[1]) if digits else 0
    return value if 1 <= value <= MAX_TOKENS else None
