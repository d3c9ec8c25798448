from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.inputs.overrides import apply_sets
from sim.inputs.yaml_text import parse_mapping

TEXT = "workload:\n  slices:\n    - {name: a, share: 1.0}\nrun: {seed: 1}\nspeculation:\n"


def source():
    return parse_mapping(TEXT, "x.yaml", Path())


def test_values_are_replaced_added_and_parsed_as_yaml():
    sets = [
        "run.seed=7",
        "run.seed=8",
        "workload.slices.0.share=1e-3",
        "engine.max_num_seqs=64",
        "speculation.method=eagle",
        "workload.arrivals={kind: closed, concurrency: 4}",
        "run.warmup=",
        "run.name='5'",
    ]
    result = apply_sets(source(), sets)
    assert result.problems == []
    assert result.data["run"] == {"seed": 8, "warmup": None, "name": "5"}
    assert result.data["workload"]["slices"] == [{"name": "a", "share": 0.001}]
    assert result.data["workload"]["arrivals"] == {"kind": "closed", "concurrency": 4}
    assert result.data["engine"] == {"max_num_seqs": 64}
    assert result.data["speculation"] == {"method": "eagle"}


def test_the_source_stays_as_it_was():
    before = source()
    apply_sets(before, ["run.seed=7", "workload.slices.0.name=b"])
    assert before.data == source().data
    assert before.marks == source().marks


def test_an_override_of_an_arm_is_one_key():
    result = apply_sets(source(), ["arms.k5.speculation.num_speculative_tokens=5", "arms.b={calibration: c}"])
    assert result.data["arms"] == {"k5": {"speculation.num_speculative_tokens": 5}, "b": {"calibration": "c"}}


def test_places_are_in_the_override():
    result = apply_sets(source(), ["workload.arrivals={kind: closed}", "engine.x=1"])
    assert result.marks["workload.arrivals.kind"] == ("--set workload.arrivals={kind: closed}", 1, 26)
    assert result.marks["engine.x"] == ("--set engine.x=1", 1, 10)
    assert result.keys["engine"] == ("--set engine.x=1", 1, 1)
    assert result.keys["workload"][0] == "x.yaml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run.seed", "no = in it"),
        ("=5", "is no path"),
        ("run..seed=5", "is no path"),
        ("workload.slices.1.share=1", "'1' is no entry of workload.slices"),
        ("workload.slices.-1.share=1", "is no entry"),
        ("workload.slices.chat.share=1", "give a number from 0 to 0"),
        ("run.seed.x=1", "run.seed is 1"),
        ("run.seed={a: [", "cannot be read"),
        ("run.seed=*a", "alias *a"),
        ("run.seed={a: 1, a: 2}", "given twice"),
        ("run.seed=a\n---\nb", "second document"),
    ],
)
def test_an_override_that_cannot_be_applied(text, words):
    result = apply_sets(source(), [text])
    (problem,) = result.problems
    assert problem.file.startswith("--set ")
    assert problem.line == 1
    assert words in str(problem)


@given(st.lists(st.text(max_size=20) | st.from_regex(r"(workload|run|slices|0|\.){1,5}=[a-z0-9{}]{0,4}"), max_size=4))
@settings(deadline=None, max_examples=150)
def test_any_override_is_applied_or_told_in_one_line(sets):
    result = apply_sets(source(), sets)
    assert isinstance(result.data, dict)
    assert all(len(str(problem).splitlines()) == 1 for problem in result.problems)
