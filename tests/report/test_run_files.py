"""The files of a run hold every number in full, and appear whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from documents import paying

from sim.engine.records import Records, RequestRecords, SamplerCounts, Segments, Steps
from sim.inputs.errors import InputError
from sim.report.files import ROWS_AT_ONCE, make_directory, write_run
from sim.workload.requests import Requests


@dataclass
class Tables:
    name: str
    replication: int
    records: Records
    requests: Requests


@dataclass
class Result:
    document: dict
    tables: list[Tables]


def steps(count, first_ms=0.0):
    """Steps of 10 ms: 1 host, 6 target, 1 KV update, 0.5 sampling, 1.5 drafting."""
    whole = {field.name: np.arange(count) for field in fields(Steps)}
    parts = {"host_ms": 1.0, "target_ms": 6.0, "kv_update_ms": 1.0, "sampling_ms": 0.5, "draft_ms": 1.5}
    timed = {name: np.full(count, value) for name, value in parts.items()}
    times = {"start_ms": first_ms + 10.0 * np.arange(count)}
    zeros = {name: np.zeros(count) for name in ("target_decode_ms", "extrapolated_ms")}
    return Steps(**whole | timed | times | zeros)


def records(async_delivery=False):
    """Request 0 on replica 1, steps 1 to 5, 9 tokens; request 1 failed; request 2 on replica 0, one token at step 0."""
    columns = {field.name: np.arange(3) for field in fields(RequestRecords)}
    columns |= {
        "arrival_ms": np.array([100.1, 0.0, 0.0]),
        "status": np.array([0, 1, 0]),
        "replica": np.array([1, 0, 0]),
        "output_tokens": np.array([9, 4, 1]),
        "first_scheduled_step": np.array([1, -1, 0]),
        "first_token_step": np.array([2, -1, 0]),
        "finish_step": np.array([5, -1, 0]),
        "own_prefill_ms": np.array([6.0, 0.0, 6.0]),
    }
    none = np.zeros(0, np.int64)
    segments = Segments(none, none, none, none, none.astype(bool))
    counts = SamplerCounts(0, 0, 0, 0, 0, 0, *5 * [none])
    return Records([steps(1), steps(6, 100.0)], RequestRecords(**columns), segments, counts, async_delivery, None)


def requests(count=3):
    ones = np.ones(count, np.int64)
    return Requests(np.zeros(count), 7 * ones, ones, np.arange(count) % 2, 0 * ones)


def result(arms=("baseline", "speculative"), **options):
    tables = [Tables(name, replication, records(**options), requests()) for name in arms for replication in (0, 1)]
    return Result(paying(), tables)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_files_and_result(tmp_path):
    written = result()
    write_run(written, tmp_path / "new" / "run")
    names = {path.name for path in (tmp_path / "new" / "run").iterdir()}
    arms = ("baseline", "speculative")
    assert names == {"result.json"} | {f"{kind}-{arm}.csv" for kind in ("requests", "steps") for arm in arms}
    assert json.loads((tmp_path / "new" / "run" / "result.json").read_text("utf-8")) == written.document


def test_latencies_of_each_request(tmp_path):
    write_run(result(), tmp_path)
    table = rows(tmp_path / "requests-baseline.csv")
    assert [(row["replication"], row["request"]) for row in table] == [(r, i) for r in "01" for i in "012"]
    served, failed, one_token = table[3:]
    # replica 1 starts at 100 ms: scheduled in the step at 110, first token at 130, last at 160
    assert float(served["queue_ms"]) == pytest.approx(110 - 100.1)
    assert float(served["ttft_ms"]) == pytest.approx(130 - 100.1)
    assert float(served["e2el_ms"]) == pytest.approx(160 - 100.1)
    assert float(served["decode_ms"]) == pytest.approx(30)
    assert float(served["tpot_ms"]) == pytest.approx(30 / 8)
    assert [served["slice"], failed["slice"], one_token["slice"]] == ["chat", 'code, "long"', "chat"]
    assert [served["status"], failed["status"]] == ["completed", "failed"]
    assert [failed[name] for name in ("queue_ms", "ttft_ms", "tpot_ms", "decode_ms", "e2el_ms")] == [""] * 5
    assert [one_token["tpot_ms"], one_token["e2el_ms"], one_token["prompt_tokens"]] == ["", "10.0", "7"]


def test_asynchronous_tokens_leave_before_drafting(tmp_path):
    write_run(result(async_delivery=True), tmp_path)
    served = rows(tmp_path / "requests-baseline.csv")[0]
    assert float(served["ttft_ms"]) == pytest.approx(128.5 - 100.1)


def test_every_step_of_every_replica_is_written(tmp_path):
    write_run(result(), tmp_path)
    table = rows(tmp_path / "steps-speculative.csv")
    keys = [(row["replication"], row["replica"], row["step"]) for row in table]
    assert keys == [(r, *step) for r in "01" for step in [("0", "0"), *(("1", str(i)) for i in range(6))]]
    assert {field.name for field in fields(Steps)} < set(table[0])
    assert [row["start_ms"] for row in table[:3]] == ["0.0", "100.0", "110.0"]
    assert {row["duration_ms"] for row in table} == {"10.0"}


def test_numbers_are_whole_in_long_tables(tmp_path):
    count = ROWS_AT_ONCE + 3
    start = np.random.default_rng(1).random(count) * 1e6
    long = replace(records(), steps=[replace(steps(count), start_ms=start)])
    empty = replace(long.requests, **{f.name: np.zeros(0, np.int64) for f in fields(RequestRecords)})
    write_run(Result(paying(), [Tables("a", 0, replace(long, requests=empty), requests(0))]), tmp_path)
    table = rows(tmp_path / "steps-a.csv")
    assert [float(row["start_ms"]) for row in table] == start.tolist()
    assert rows(tmp_path / "requests-a.csv") == []


def test_writing_again_gives_the_same_bytes(tmp_path):
    write_run(result(), tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_run(result(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_arm_names_cannot_leave_the_directory(tmp_path):
    inside = tmp_path / "run"
    write_run(result(arms=("../up", "a/b")), inside)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (inside / "steps-..%2Fup.csv").is_file()
    assert (inside / "requests-a%2Fb.csv").is_file()


def test_a_failure_leaves_the_old_files_and_no_half_ones(tmp_path):
    write_run(result(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    broken = result(arms=("baseline",))
    broken.document["seed"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        write_run(broken, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_in_the_way_is_a_user_error(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="taken:1:1: --out: is a file, --out must be a directory") as caught:
        write_run(result(), tmp_path / "taken")
    assert len(caught.value.problems) == 1
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("name", ["x\0y", "x" * 300, "taken/below"])
def test_impossible_directories_are_user_errors(tmp_path, name):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="--out: cannot be written"):
        make_directory(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_read_only_directory_is_a_user_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="--out: cannot be written"):
        make_directory(tmp_path)


def test_a_full_disk_is_a_user_error_without_half_files(tmp_path):
    resource = pytest.importorskip("resource", reason="file size limits are a POSIX matter")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(InputError, match="--out: cannot be written"):
            write_run(result(), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
