"""Plans: names, order, sizes, and what they cost before anything runs."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.errors import ProfileError
from profiler.plan import SENTINEL_EVERY, make_plan, memory_bytes
from profiler.point import Group, batch_spec, parse_spec, point_key, spec_of
from profiler.presets import PRESETS
from profiler.session import check_memory, make_setup

GROUPS = st.builds(Group, st.integers(1, 300), st.integers(1, 9000), st.integers(0, 200_000))


@settings(deadline=None)
@given(st.lists(GROUPS, min_size=1, max_size=4))
def test_a_batch_is_what_its_name_says(groups):
    assert parse_spec(spec_of(*groups)) == tuple(groups)


def test_names_read_as_they_should():
    assert parse_spec("16q4s1k") == (Group(16, 4, 1024),)
    assert parse_spec("2q1k_16q4s1k_q1s100") == (Group(2, 1024, 0), Group(16, 4, 1024), Group(1, 1, 100))
    assert batch_spec(1, 512) == "q512"
    with pytest.raises(ProfileError, match="'16x4' is no batch"):
        parse_spec("16x4")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("device", ["cpu", "synthetic"])
def test_a_plan_has_each_point_once_and_is_the_same_each_time(preset, device):
    setup = make_setup(preset, "tiny-target", "tiny-draft", device=device)
    plan = make_plan(setup)
    assert len(set(plan.points)) == len(plan.points)
    assert make_plan(setup) == plan
    assert len({point_key(point, setup.digest()) for point in plan.points}) == len(plan.points)
    marks = [place for place, point in enumerate(plan.points) if point.phase == "sentinel"]
    assert marks[0] == 0
    assert marks[-1] == len(plan.points) - 1
    assert max(b - a for a, b in pairwise(marks)) == SENTINEL_EVERY + 1


def test_presets_have_about_the_points_that_they_promise():
    sizes = {
        preset: len(make_plan(make_setup(preset, "llama-3.1-8b", "llama-3.2-1b", device="cuda")).points)
        for preset in PRESETS
    }
    assert sizes["smoke"] < 50 < sizes["quick"] < 350
    assert 600 < sizes["full"] < 800


def test_no_axis_is_walked_in_order():
    plan = make_plan(make_setup("full", device="synthetic"))
    contexts = [point.group.context for point in plan.points if point.phase == "attention"]
    rises = sum(a < b for a, b in pairwise(contexts))
    assert 0.25 < rises / len(contexts) < 0.6


def test_the_largest_tensors_come_first():
    plan = make_plan(make_setup("full", "llama-3.1-8b", device="cuda"))
    places = {point.name: place for place, point in enumerate(plan.points)}
    assert places["body q8k eager"] < places["body q1s16 graph"]


def test_memory_is_weights_kv_and_activations():
    setup = make_setup("full", "llama-3.1-8b", "llama-3.2-1b", dtype="bf16", device="cuda")
    parts = memory_bytes(make_plan(setup))
    assert parts["weights"] == pytest.approx(2 * (8.03e9 + 1.236e9), rel=0.002)  # the models' published sizes
    assert setup.target.kv_bytes_per_token("bf16") == 131_072


def test_too_little_memory_is_told_before_anything_is_allocated():
    plan = make_plan(make_setup("quick", "llama-3.1-8b", device="cpu"))
    with pytest.raises(ProfileError, match=r"memory: .* GiB are needed .*, 20.00 GiB are free, .*--depths"):
        check_memory(plan, 20 * 2**30)
    check_memory(plan, 200 * 2**30)


def test_a_plan_without_a_draft_has_no_drafting():
    plan = make_plan(make_setup("quick", "tiny-target", device="cpu"))
    assert {point.phase for point in plan.points}.isdisjoint({"draft_first", "draft_narrow", "chain"})
    assert all(point.group.query == 1 for point in plan.points if point.phase in ("round", "live"))
