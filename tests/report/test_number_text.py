"""Numbers read the same wherever they are printed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.report.number_text import count_text, from_to_text, number_text, percent_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.0, "0"), (1.615, "1.61"), (9.38, "9.38"), (153.2, "153"), (153_886.3, "153,886"),
     (0.000123, "0.000123"), (1.5e-7, "1.50e-07"), (2e9, "2.00e+09"), (-2.5, "-2.50")],
)  # fmt: skip
def test_three_digits(value, text):
    assert number_text(value) == text


@settings(deadline=None, max_examples=200)
@given(st.floats(1e-12, 1e15))
def test_the_text_is_the_value_to_three_digits(value):
    text = number_text(value)
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.0051)
    assert len(re.sub(r"[^0-9]", "", text)) <= 13


def test_percentages_and_counts():
    texts = ["-", "0 %", "0.4 %", "9.5 %", "10 %", "100 %"]
    assert [percent_text(x) for x in (None, 0, 0.004, 0.0949, 0.1, 1)] == texts
    assert [count_text(x) for x in (None, 0, 12_345)] == ["-", "0", "12,345"]


def test_long_times_are_told_in_seconds():
    assert from_to_text(6.1, 3.8, "ms") == "6.10 -> 3.80 ms"
    assert from_to_text(153_886, 213_963, "ms") == "154 -> 214 s"
    assert from_to_text(50, 213_963, "ms") == "50.0 -> 213,963 ms"
    assert from_to_text(0.5, 0.25, "$") == "$0.500 -> $0.250"
