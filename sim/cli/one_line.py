"""Messages for stderr: one line each, whatever a file or a name holds."""

from __future__ import annotations


def one_line(text: str) -> str:
    """The text with line breaks as spaces and control characters, such as a file's name may hold, escaped."""
    flat = " ".join(text.splitlines())
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in flat)
