"""A timeline file appears whole or not at all, the same run gives the same bytes, and mistakes are told in one line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from documents import paying
from hand_made import records, steps, story, workload
from trace_reader import read_trace

from sim.answers.run import ArmTables, RunResult
from sim.inputs.errors import InputError
from sim.report.timeline_file import MUCH_FOR_A_VIEWER_BYTES, WrittenTimeline, check_timeline_file, write_timeline

STORIES = [story("FDD"), story("FD", arrival_ms=2.0, first_step=1), story("")]


def result(*names):
    made = records([steps([[1, 5, 5, 0, 0.5, 2]] * 3)], STORIES)
    other = records([steps([[1, 9, 9, 0, 0.5, 2]] * 3)], STORIES)
    tables = [ArmTables(name, n, workload(STORIES), (made, other)[n]) for name in names or ("a",) for n in (0, 1)]
    return RunResult(paying(), tables)


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_first_replication_of_every_arm_is_written(tmp_path):
    path = tmp_path / "t.json"
    told = write_timeline(result("baseline", 'a "b"\\n\n'), str(path))
    trace = read_trace(path)
    assert trace.processes == ["baseline", 'a "b"\\n\n']
    assert trace.threads["baseline", "steps"][0].length == 8.5e3
    assert trace.other["replication"] == 0
    assert trace.other["seed"] == paying()["seed"]
    assert (told.steps, told.requests, told.text_bytes) == (6, 6, path.stat().st_size)
    assert str(told) == "6 steps, 6 requests, 0.0 MB of JSON, opens in ui.perfetto.dev"


def test_what_is_too_much_for_a_viewer_is_said():
    assert "--timeline-window FROM:TO" in str(WrittenTimeline(text_bytes=int(MUCH_FOR_A_VIEWER_BYTES) + 1))


def test_the_same_run_gives_the_same_bytes_compressed_too(tmp_path):
    for name in ("a.json", "b.json", "a.json.gz", "b.json.gz"):
        write_timeline(result(), str(tmp_path / name))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()
    assert left(tmp_path) == ["a.json", "a.json.gz", "b.json", "b.json.gz"]


def test_long_tables_are_written_whole(tmp_path):
    long = records([steps([[1, 5, 5, 0, 0.5, 2]] * 9000)], [story("F" + "D" * 8999)])
    tables = [ArmTables("a", 0, workload([story("FD")]), long)]
    write_timeline(RunResult(paying(), tables), str(tmp_path / "t.json"))
    slices = read_trace(tmp_path / "t.json").threads["a", "steps"]
    assert [one.args["step"] for one in slices] == list(range(9000))


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write_timeline(result(), str(tmp_path / "link.json"))
    assert (tmp_path / "link.json").is_symlink()
    assert read_trace(tmp_path / "real.json").processes == ["a"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (".", "is no regular file"),
        ("missing/t.json", "cannot be written (No such file or directory)"),
        ("taken/t.json", "cannot be written (Not a directory)"),
        ("taken", "is a file that the run reads or writes itself"),
        ("x\0y", "cannot be written (embedded null byte)"),
        ("x" * 300, "cannot be written (File name too long)"),
    ],
)
def test_impossible_files_are_told_before_the_run(tmp_path, name, says):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError) as caught:
        check_timeline_file(str(tmp_path / name), [tmp_path / "taken", Path("no such name")])
    (problem,) = caught.value.problems
    assert ":1:1: --timeline: " + says in str(problem)
    assert "\n" not in str(problem)
    assert (tmp_path / "taken").read_text() == "mine"
    assert left(tmp_path) == ["taken"]


def test_a_possible_file_is_left_as_it_is(tmp_path):
    (tmp_path / "t.json").write_text("old")
    check_timeline_file(str(tmp_path / "t.json"), [])
    check_timeline_file(str(tmp_path / "new.json"), [])
    assert left(tmp_path) == ["t.json"]
    assert (tmp_path / "t.json").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_read_only_folder_is_a_user_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="--timeline: cannot be written"):
        check_timeline_file(str(tmp_path / "t.json"), [])


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_full_disk_is_a_user_error_and_leaves_the_old_file(tmp_path, name):
    resource = pytest.importorskip("resource", reason="file size limits are a POSIX matter")
    (tmp_path / name).write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(InputError, match="--timeline: cannot be written"):
            write_timeline(result(), str(tmp_path / name))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert left(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "old"


def test_what_is_no_number_is_never_written(tmp_path):
    broken = result()
    broken.tables[0].records.steps[0].sampling_ms[1] = np.nan
    with pytest.raises(ValueError, match="nan"):
        write_timeline(broken, str(tmp_path / "t.json"))
    assert left(tmp_path) == []


def test_a_window_after_the_end_is_a_user_error(tmp_path):
    with pytest.raises(
        InputError, match=r"--timeline-window: begins at 3 s, the run ends at 0.0255 s, take an earlier"
    ):
        write_timeline(result(), str(tmp_path / "t.json"), (3.0, 4.0))
    assert left(tmp_path) == []
