"""`--vary`: what is an axis, and what is told of a text that is none."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.inputs.errors import InputError
from sim.inputs.vary import MOST_CELLS, parse_axes

K = "speculation.num_speculative_tokens"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("0:8", (0, 1, 2, 3, 4, 5, 6, 7, 8)),
        ("8:0:-4", (8, 4, 0)),
        ("1:6:2", (1, 3, 5)),
        ("0.1:0.3:0.1", (0.1, 0.2, 0.3)),
        ("1,2,4", (1, 2, 4)),
        ("0:2,8,2", (0, 1, 2, 8)),
        ("5", (5,)),
        ("vllm,fixed_batch", ("vllm", "fixed_batch")),
        ("[[1, 16, 4]],[[1, 8, 2], [9, 16, 0]]", ([[1, 16, 4]], [[1, 8, 2], [9, 16, 0]])),
        ("{kind: poisson, rate: 1},{kind: closed, concurrency: 2}", None),
        ('"1:3"', (1, 2, 3)),
        ("1,1.0,true", (1, 1.0, True)),
    ],
)
def test_values(values, expected):
    [axis] = parse_axes([f"{K}={values}"])
    assert axis.path == K
    if expected is None:
        expected = ({"kind": "poisson", "rate": 1}, {"kind": "closed", "concurrency": 2})
    assert axis.values == expected
    assert [type(value) for value in axis.values] == [type(value) for value in expected]


@given(first=st.integers(-1000, 1000), count=st.integers(0, 50), step=st.decimals("0.001", "10", places=3))
def test_a_range_has_its_ends_and_equal_steps(first, count, step):
    last = first + count * step
    [axis] = parse_axes([f"a={first}:{last}:{step}"])
    assert axis.values[0] == first
    assert axis.values[-1] == float(last)
    assert axis.values == tuple(float(first + index * Decimal(step)) for index in range(count + 1))


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([], "there is no axis"),
        (["a"], "no = in it"),
        (["=1"], "is no path"),
        (["a..b=1"], "is no path"),
        (["a="], "has no values"),
        (["a=,"], "has no values"),
        (["a=3:1"], "is empty"),
        (["a=1:3:0"], "is empty"),
        (["a=1:3:-1"], "is empty"),
        (["a=1:"], "cannot be read"),
        (["a=1:2:3:4"], "is no range"),
        (["a=[1"], "cannot be read"),
        (["a=1", "a=2"], "varied twice"),
        (["a.b=1", "a=2"], "set the same part"),
        (["a=1:10000000"], "10,000,000 cells"),
        (["a=1:1e15:1e-15"], f"at most {MOST_CELLS:,}"),
        (["a=1:101", "b=1:100"], "10,100 cells"),
    ],
)
def test_what_is_no_grid(texts, says):
    with pytest.raises(InputError, match=says):
        parse_axes(texts)
