"""Token counts as other tools write them in text."""

from __future__ import annotations

from ..inputs.numbers import MAX_TOKENS

TOKEN_COUNT_RULE = f"a whole number from 1 to {MAX_TOKENS} is needed"
_DIGITS = 18  # more cannot be in range, and Python refuses to convert thousands of them


def token_count(text: str) -> int | None:
    """The whole number of tokens that `text` says, or None where it breaks `TOKEN_COUNT_RULE`."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        return None
    value = int(digits)
    return value if 1 <= value <= MAX_TOKENS else None
