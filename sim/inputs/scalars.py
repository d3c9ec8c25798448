"""Plain scalars of YAML and JSON: what is a number, a boolean, nothing, or text.

Only spellings on which YAML 1.1, YAML 1.2 and JSON readers agree become something else than text. So `no` stays a
name, `010`, `1:30`, `1_000` and `2024-01-01` never turn into numbers that nobody wrote, and `1e-3` is a number.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_REAL = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?(\.inf|\.nan|nan|inf|infinity)", re.IGNORECASE)
_WORDS: dict[str, bool | None] = {"": None, "~": None}
_WORDS |= dict.fromkeys(("null", "Null", "NULL"))
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True)
_WORDS |= dict.fromkeys(("false", "False", "FALSE"), False)
_LONGEST_INTEGER = 30  # digits; longer ones become floats, so that their conversion costs nothing


def plain_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar. `.nan`, `.inf` and their JSON spellings become floats, to be refused later."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _LONGEST_INTEGER else float(text)
    if _REAL.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.lower().replace(".", ""))
    return text
