"""What the page takes from the tables beside a result, against the columns themselves."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from page_results import HOSTILE, write_run_with_tables

from sim.inputs.errors import InputError
from sim.report.page.request_tables import ALL, PERCENTS, request_quantiles
from sim.report.page.step_tables import PARTS, step_series


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_run_with_tables(tmp_path_factory.mktemp("run"), ["engine.replicas=2"])


def column_of(path, name):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), name


def test_quantiles_are_those_of_the_requests(folder):
    rows, _ = column_of(folder / "requests-speculative.csv", "ttft_ms")
    found = request_quantiles(folder, "speculative")
    assert set(found) == {ALL, HOSTILE, "prose"}
    for name, chosen in ((ALL, rows), (HOSTILE, [row for row in rows if row["slice"] == HOSTILE])):
        values = [float(row["e2el_ms"]) for row in chosen]
        assert found[name]["e2el"] == pytest.approx(np.percentile(values, PERCENTS))


def test_levels_over_time_hold_the_same_area_as_the_steps(folder):
    rows, _ = column_of(folder / "steps-baseline.csv", "running")
    series = step_series(folder, "baseline")
    assert len(series) == 2
    for replica, one in enumerate(series):
        own = [row for row in rows if row["replication"] == "0" and row["replica"] == str(replica)]
        end_s = max(float(row["start_ms"]) + float(row["duration_ms"]) for row in own) / 1e3
        for name in ("running", "waiting", "blocks_used"):
            area = sum(float(row[name]) * float(row["duration_ms"]) for row in own) / 1e3
            assert sum(one.levels[name]) * end_s / PARTS == pytest.approx(area)
        assert one.at_s[0] == pytest.approx(end_s / PARTS / 2)


def test_without_tables_there_is_nothing(tmp_path):
    assert request_quantiles(tmp_path, "baseline") == {}
    assert step_series(tmp_path, "baseline") == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a,b\n1,2\n", ":1:1: table: has no column"),
        ("slice,ttft_ms,tpot_ms,e2el_ms,decode_ms,queue_ms\nx,1\n", ":2:1: table: has 2 fields instead of 6"),
        ("slice,ttft_ms,tpot_ms,e2el_ms,decode_ms,queue_ms\nx,one,,,,\n", ":2:1: table: has no number in ttft_ms"),
        ("slice\xff", "cannot be read"),
    ],
)
def test_a_broken_table_is_named_with_its_line(tmp_path, content, says):
    (tmp_path / "requests-a.csv").write_text(content, "latin-1")
    with pytest.raises(InputError, match=says):
        request_quantiles(tmp_path, "a")
