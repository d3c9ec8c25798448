import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim.inputs.errors import InputError
from sim.inputs.scalars import plain_scalar
from sim.inputs.yaml_text import MAX_DEPTH, MAX_VALUES, parse_mapping


def parse(text):
    return parse_mapping(text, "x.yaml", Path())


def refused(text):
    with pytest.raises(InputError) as caught:
        parse(text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e-3", 0.001),
        ("1.0E+2", 100.0),
        ("true", True),
        ("FALSE", False),
        ("", None),
        ("~", None),
        ("null", None),
    ],
)
def test_numbers_booleans_and_nothing(text, value):
    result = plain_scalar(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    "text", ["no", "on", "yes", "off", "010", "0x10", "1:30", "1_000", "2024-01-01", "e5", ".", "-", "1e", "80%"]
)
def test_what_readers_of_yaml_disagree_on_stays_text(text):
    assert plain_scalar(text) == text


@pytest.mark.parametrize("text", [".nan", ".NaN", "NaN", ".inf", "-.inf", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_what_is_not_finite_is_a_float_that_is_not_finite(text):
    value = plain_scalar(text)
    assert isinstance(value, float)
    assert not math.isfinite(value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
@settings(deadline=None, max_examples=200)
def test_every_number_of_json_is_read_as_it_was_written(number):
    assert plain_scalar(json.dumps(number)) == number


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc 'é:#-", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abxy", min_size=1, max_size=3), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abxy", min_size=1, max_size=3), json_values), st.sampled_from([None, 2]))
@settings(deadline=None, max_examples=150)
def test_json_is_read_as_json(data, indent):
    source = parse(json.dumps(data, indent=indent, ensure_ascii=False))
    assert source.data == data
    assert source.problems == []


@given(st.text(max_size=60) | st.text("ab:-[]{},&*!|>'\"#% \n\t?", max_size=60))
@settings(deadline=None, max_examples=300)
@example("? [a]\n: 1")
@example("&a a: *a")
@example("a: !!python/object:os.system x")
@example("--- a\n--- b")
@example('"a\\nb": &x {"\\u2028": *x}')
def test_any_text_gives_a_mapping_or_problems_of_one_line(text):
    try:
        source = parse(text)
    except InputError as error:
        problems = error.problems
        assert problems
    else:
        assert isinstance(source.data, dict)
        problems = source.problems
    assert all(len(str(problem).splitlines()) == 1 for problem in problems)


def test_values_and_keys_have_places():
    source = parse("a: 1\nb:\n  - c: {d: 2}\n    e: x\n")
    assert source.marks["a"][1:] == (1, 4)
    assert source.keys["a"][1:] == (1, 1)
    assert source.marks["b"][1:] == (2, 1)  # a block is where its key is
    assert source.marks["b.0.c.d"][1:] == (3, 12)
    assert source.keys["b.0.e"][1:] == (4, 5)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' is given twice"),
        ("a: {b: 1,\n  b: 2}\n", 2, "key 'b' is given twice"),
        ("a: &x [1]\nb: *x\n", 2, "alias *x"),
        ("b: &x {c: 1}\na:\n  <<: *x\n", 3, "merge key <<"),
        ("a: 1\n5: 2\n", 2, "key 5 is no text"),
        ("a: 1\ntrue: 2\n", 2, "key true is no text"),
        ("a: !!float 5\n", 1, "tag tag:yaml.org,2002:float"),
    ],
)
def test_mistakes_that_leave_data_to_check(text, line, what):
    problems = parse(text).problems
    assert any(problem.line == line and problem.what == what for problem in problems)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "is empty"),
        ("# only a comment\n", 1, "is empty"),
        ("- a\n- b\n", 1, "is a list"),
        ("hello", 1, "is a single value"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a:\n\tb: 1\n", 2, "indent with spaces"),
        ('{"a": [1, 2', 1, "cannot be read"),
        ("a: 'open\n", 1, "cannot be read"),
        ("a: 1\nb: \x00\n", 2, "U+0000"),
        ("a: \x1b[0m\n", 1, "U+001B"),
        ("a: 1\n? {b: c}\n: 2\n", 2, "a key that is no text"),
        ("a: " + "[" * (MAX_DEPTH + 1), 1, "without end"),
        ("[" * 100_000, 1, "file"),
        ("a: [" + "1," * MAX_VALUES + "1]", 1, "more values"),
    ],
)
def test_text_that_is_refused(text, line, words):
    (problem,) = refused(text)
    assert problem.line in (line, line + 1)  # the parser counts the end of a text as a line of its own
    assert words in str(problem)


def test_an_alias_bomb_is_not_expanded():
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 30))
    source = parse("l0: &l0 [x]\n" + levels)
    assert len(source.problems) == 9 * 29
    assert source.data["l29"] == [None] * 9
