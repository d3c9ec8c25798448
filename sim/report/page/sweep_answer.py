"""The answer of a sweep in a few sentences: where speculation gains most, where it loses, and where it breaks even."""

from __future__ import annotations

from typing import Any

from ..changes import MIN_EFFECT
from ..number_text import number_text
from .cases import texts
from .sweep_grid import GAINS, LABELS

MOST_LINES = 6  # break-even points that are told; the figures have all


def sweep_answer(document: dict[str, Any]) -> str:
    """Best and worst cell by the sweep's own metric, and how many gain, lose, or show no difference."""
    metric = document["speedup"]["metric"]
    name = dict(GAINS).get(metric, metric)
    told = [
        (own["ratio"], own["verdict"], arm, cell)
        for cell in document["cells"]
        for arm, own in cell["speedup"].items()
        if own["ratio"] is not None
    ]
    if not told:
        return f"No cell compares {name} with a baseline."
    best, worst = max(told, key=lambda one: one[0]), min(told, key=lambda one: one[0])
    several = len({arm for _, _, arm, _ in told}) > 1
    sentences = [f"Of {len(told)} cells, {_counts(told)} by {name}."]
    if best[0] > 1 + MIN_EFFECT:
        sentences.append(f"Speculation gains most at {_place(best, several)}: {number_text(best[0])}x.")
    if worst[0] < 1 - MIN_EFFECT:
        sentences.append(f"It loses most at {_place(worst, several)}: {number_text(worst[0])}x.")
    return " ".join(sentences)


def break_even_lines(document: dict[str, Any]) -> list[str]:
    """Between which neighbours of the grid a gain turns into a loss."""
    lines = []
    for one in document["break_even"]:
        low, high = texts(one["between"])
        at = ", ".join(
            f"{_named(path)} {text}" for path, text in zip(one["at"], texts(list(one["at"].values())), strict=True)
        )
        where = f" at {at}" if at else ""
        lines.append(f"{one['arm']}{where}: between {_named(one['path'])} {low} and {high}, gains {one['gains']}.")
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"And {more} more in the figures."]


def _counts(told: list[tuple[float, str, str, dict[str, Any]]]) -> str:
    words = {
        "better": "gain",
        "worse": "lose",
        "no_difference_shown": "show no difference",
        "not_tested": "are not tested",
    }
    counts = {word: sum(verdict == key for _, verdict, _, _ in told) for key, word in words.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _place(one: tuple[float, str, str, dict[str, Any]], several: bool) -> str:
    _, _, arm, cell = one
    paths, values = list(cell["values"]), texts(list(cell["values"].values()))
    where = ", ".join(f"{_named(path)} = {text}" for path, text in zip(paths, values, strict=True))
    return f"{where} ({arm})" if several else where


def _named(path: str) -> str:
    return LABELS.get(path.rpartition(".")[2], path)
