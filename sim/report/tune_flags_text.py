"""Engine flags of a tuning result as text: what is recommended first, each engine with its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def flag_lines(flags: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each set of flags as lines to paste, notes as shell comments."""
    lines = []
    for part in flags:
        mark = "recommended" if part["recommended"] else "not recommended"
        lines.append(f"Flags, {mark}: {part['label']}")
        for engine in part["engines"]:
            lines.append(f"  # {engine['engine']} {engine['version']}")
            lines += [f"  # {note}" for note in engine["notes"]]
            lines += [f"  {line}" for line in engine["text"].splitlines()]
        lines.append("")
    return lines
