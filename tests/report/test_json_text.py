"""Results are strict JSON: what goes in comes out, to the last bit, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.report.json_text import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def refuse(constant):
    raise AssertionError(constant)


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text(), VALUES))
def test_round_trip_keeps_values_and_order(document):
    text = json_text(document)
    back = json.loads(text, parse_constant=refuse)
    assert back == document
    assert list(back) == list(document)
    assert text.endswith("}\n")
    assert text.isascii()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_number_is_an_error_not_a_word(value):
    with pytest.raises(ValueError, match="JSON"):
        json_text({"mean_tpot_ms": value})
