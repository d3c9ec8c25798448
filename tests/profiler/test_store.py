"""Results folders: append-only, resumed, never mixed, and clear about what is broken."""

import json

import pytest

from profiler.errors import ProfileError
from profiler.point import Point
from profiler.session import make_setup
from profiler.store import Store, read_points

GPU = {"kind": "cuda", "name": "GPU A", "torch": "2.13", "backend": "varlen"}
SAMPLE = {"median_ms": 1.0, "mean_ms": 1.0, "mad_ms": 0.0}


@pytest.fixture
def setup():
    return make_setup("smoke", device="synthetic")


@pytest.fixture
def folder(tmp_path, setup):
    with Store(tmp_path, setup, GPU) as store:
        for batch in (1, 2, 4):
            store.add(Point("head", f"{batch}q1"), "ok", SAMPLE, {})
    return tmp_path


def test_points_come_back_as_they_were_written(folder, setup):
    points = read_points(folder)
    assert points.setup == setup
    assert points.environment == GPU
    assert [row.point.spec for row in points.rows] == ["1q1", "2q1", "4q1"]
    assert points.rows[0].sample == SAMPLE


def test_a_torn_last_line_is_left_out_and_written_over(folder, setup):
    path = folder / "points.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert len(read_points(folder).rows) == 2
    with Store(folder, setup, GPU) as store:
        assert not store.has(Point("head", "4q1"))
        store.add(Point("head", "4q1"), "ok", SAMPLE, {})
    assert path.read_bytes() == whole


@pytest.mark.parametrize("length", [1, 30])
def test_a_torn_header_starts_anew(folder, setup, length):
    path = folder / "points.jsonl"
    path.write_bytes(path.read_bytes()[:length])
    with Store(folder, setup, GPU) as store:
        assert store.rows == []
    assert read_points(folder).rows == []


def test_a_broken_line_in_the_middle_is_named_and_nothing_is_lost(folder, setup):
    path = folder / "points.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    broken = b"".join([*lines[:2], lines[2][:30] + b"\n", *lines[3:]])
    path.write_bytes(broken)
    with pytest.raises(ProfileError, match=r"points\.jsonl:3: line: is broken"):
        read_points(folder)
    with pytest.raises(ProfileError, match=r"points\.jsonl:3: line: is broken"):
        Store(folder, setup, GPU)
    assert path.read_bytes() == broken


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"name": "GPU B"}, "the points there are of GPU A, this is GPU B"),
        ({"kind": "cpu"}, "environment.kind"),
        ({"torch": "2.9"}, "environment.torch"),
        ({"backend": "sdpa"}, "environment.backend"),
    ],
)
def test_points_of_another_machine_are_refused(folder, setup, changed, says):
    before = (folder / "points.jsonl").read_bytes()
    with pytest.raises(ProfileError, match=says):
        Store(folder, setup, GPU | changed)
    assert (folder / "points.jsonl").read_bytes() == before


def test_points_of_other_models_are_refused(folder):
    other = make_setup("smoke", "llama-3.2-1b", device="synthetic")
    with pytest.raises(ProfileError, match="setup: differs in target, draft"):
        Store(folder, other, GPU)


def test_a_larger_preset_goes_on_in_the_same_folder(folder):
    with Store(folder, make_setup("full", device="synthetic"), GPU) as store:
        assert len(store.rows) == 3


def test_points_without_a_time_are_done_unless_they_are_asked_for(folder, setup):
    point = Point("head", "8q1")
    with Store(folder, setup, GPU) as store:
        store.add(point, "failed", {}, {"why": "it did"})
    with Store(folder, setup, GPU) as store:
        assert store.has(point)
    with Store(folder, setup, GPU, retry_failed=True) as store:
        assert not store.has(point)
        assert store.has(Point("head", "4q1"))


def test_two_runs_do_not_write_one_folder(folder, setup):
    with Store(folder, setup, GPU), pytest.raises(ProfileError, match="another run is writing it"):
        Store(folder, setup, GPU)


def test_no_folder_is_told(tmp_path):
    with pytest.raises(ProfileError, match=r"measure first, or check the path"):
        read_points(tmp_path / "nowhere")


@pytest.mark.parametrize("line", [b"[]\n", b'{"schema": "other/1"}\n', b'{"schema": "specsim-points/1"}\n'])
def test_a_file_that_is_none_of_ours_is_told(tmp_path, setup, line):
    (tmp_path / "points.jsonl").write_bytes(line)
    with pytest.raises(ProfileError, match=r"points\.jsonl:1: "):
        Store(tmp_path, setup, GPU)
    assert (tmp_path / "points.jsonl").read_bytes() == line


def test_lines_are_strict_json(folder):
    for line in (folder / "points.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))
