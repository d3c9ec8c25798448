"""Words of the error messages: values as the user wrote them, lists of names, and "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

MOST_NAMES = 20


def shown(value: Any, limit: int = 60) -> str:
    """A value in one short line, spelled as in a scenario file."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return one_line(repr(value[: limit + 1]) if isinstance(value, str) else str(value), limit)


def one_line(text: str, limit: int = 400) -> str:
    """Text that stays on one line of a terminal: what cannot be printed is escaped, what is too long is cut."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 1] + "…"


def listed(names: Iterable[str]) -> str:
    """Names in one line, cut after the first twenty."""
    every = list(names)
    text = ", ".join(every[:MOST_NAMES])
    return f"{text}, … ({len(every)} in all)" if len(every) > MOST_NAMES else text


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 replica`, `2 replicas`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def closest(word: object, known: Iterable[str]) -> str | None:
    """The known name that the word most likely stands for, or None."""
    by_lower = {name.lower(): name for name in known}
    match = difflib.get_close_matches(str(word)[:100].lower(), by_lower, n=1)
    return by_lower[match[0]] if match else None


def did_you_mean(word: object, known: Iterable[str], otherwise: str) -> str:
    """A remedy: the closest known name, or `otherwise` where none is close."""
    match = closest(word, known)
    return f"did you mean {match!r}?" if match else otherwise
