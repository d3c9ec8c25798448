"""The parts of a step by name, for tables."""

from __future__ import annotations

LABELS = {
    "whole_round": "whole round",
    "kv_update": "KV update",
    "draft_first_pass": "draft, first pass",
    "draft_narrow_passes": "draft, narrow passes",
}


def part_label(name: str) -> str:
    """A part as a reader knows it."""
    return LABELS.get(name, name)
