"""Token counts as other tools write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..inputs.numbers import MAX_TOKENS

TOKEN_COUNT_RULE = f"a whole number from 1 to {MAX_TOKENS} is needed"
_WHOLE = re.compile(r"(\d{1,18})(?:\.0{0,18})?", re.ASCII)  # more digits cannot be in range; Python refuses thousands


def token_count(cell: Any) -> int | None:
    """The whole number of tokens that text or a JSON number says (374 and 374.0), or None where it breaks the rule."""
    value: Any = cell
    if isinstance(cell, str):
        digits = _WHOLE.fullmatch(cell.strip())
        value = int(digits[1]) if digits else None
    elif isinstance(cell, float) and cell.is_integer():
        value = int(cell)
    return value if type(value) is int and 1 <= value <= MAX_TOKENS else None


def token_counts(cells: Sequence[Any]) -> list[int | None]:
    """`token_count` of every cell; lengths repeat, so each spelling in a text file is looked at once."""
    seen = {text: token_count(text) for text in {cell for cell in cells if type(cell) is str}}
    return [seen[cell] if type(cell) is str else token_count(cell) for cell in cells]
