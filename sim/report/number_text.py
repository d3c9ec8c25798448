"""Numbers as people read them: three significant digits and a unit."""

from __future__ import annotations

import math


def number_text(value: float | None) -> str:
    """Three significant digits with thousands separators; "-" where there is no number."""
    if value is None:
        return "-"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-4 or size >= 1e9:
        return f"{value:.2e}"
    decimals = max(0, 2 - math.floor(math.log10(size)))
    return f"{value:,.{decimals}f}"


def count_text(value: float | None) -> str:
    """A whole number with thousands separators."""
    return "-" if value is None else f"{value:,.0f}"


def percent_text(fraction: float | None) -> str:
    """A fraction as a whole percentage, one decimal below 10 %."""
    if fraction is None:
        return "-"
    percent = 100 * fraction
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"


def from_to_text(before: float, after: float, unit: str) -> str:
    """`6.10 -> 3.80 ms`; milliseconds from ten seconds on are told in seconds, dollars before the number."""
    if unit == "ms" and min(before, after) >= 10_000:
        return f"{number_text(before / 1000)} -> {number_text(after / 1000)} s"
    if unit == "$":
        return f"${number_text(before)} -> ${number_text(after)}"
    return f"{number_text(before)} -> {number_text(after)} {unit}"
