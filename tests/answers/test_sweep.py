"""Sweeps: cells are runs, baselines are shared, finished cases are taken up again, executors change nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim.answers import cell_run, sweep
from sim.answers.case_store import CaseStore
from sim.answers.run import run_scenario
from sim.answers.stored_replications import replications_from, stored_replications
from sim.inputs.errors import InputError
from sim.report.json_text import json_text

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = {
    "calibration": {"kind": "affine", "target_fixed_ms": 6, "target_per_token_us": 21, "draft_fixed_ms": 0.3},
    "workload": {
        "requests": 12,
        "arrivals": {"kind": "closed", "concurrency": 2},
        "slices": [
            {
                "name": "a",
                "prompt_tokens": 20,
                "output_tokens": {"kind": "geometric", "mean": 15},
                "acceptance": {"kind": "iid", "alpha": 0.7},
                "success_rate": 0.8,
            }
        ],
    },
    "speculation": {"method": "eagle", "num_speculative_tokens": 2},
    "price": {"usd_per_gpu_hour": 2},
    "run": {"seed": 3, "replications": 2},
}
VARY = ("speculation.num_speculative_tokens=0:2", "workload.arrivals.concurrency=1,4")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(SCENARIO))
    return path


@pytest.fixture
def counted(monkeypatch):
    """Counts what is simulated in this process."""
    counts = {"baselines": 0, "cells": 0}

    def counting(name, function):
        def counted(*arguments):
            counts[name] += 1
            return function(*arguments)

        return counted

    monkeypatch.setattr(sweep, "run_baseline", counting("baselines", cell_run.run_baseline))
    monkeypatch.setattr(sweep, "run_cell", counting("cells", cell_run.run_cell))
    return counts


def swept(scenario, vary=VARY, **options):
    return sweep.sweep_scenario(scenario, options.pop("sets", ()), vary, **options)


def test_a_cell_is_the_run_of_its_scenario(scenario):
    document = swept(scenario)
    assert [cell["values"] for cell in document["cells"]] == [
        {"speculation.num_speculative_tokens": k, "workload.arrivals.concurrency": users}
        for k in range(3)
        for users in (1, 4)
    ]
    for cell in document["cells"]:
        alone = run_scenario(scenario, cell["set"]).document
        assert json_text(cell["arms"]) == json_text(alone["arms"])
        assert json_text(cell["comparison"]) == json_text(alone["comparison"])
        assert cell["warnings"] == alone["warnings"]


def test_no_drafts_are_the_baseline_byte_for_byte(scenario):
    for cell in swept(scenario)["cells"]:
        same = json_text(cell["arms"]["speculative"]) == json_text(cell["arms"]["baseline"])
        assert same == (cell["values"]["speculation.num_speculative_tokens"] == 0)


def test_a_baseline_is_simulated_once_for_each_traffic(scenario, counted):
    swept(scenario, (*VARY, "workload.slices.0.acceptance.alpha=0.5,0.9"))
    assert counted == {"baselines": 2, "cells": 12}


def test_a_sweep_goes_on_with_what_is_there(scenario, counted, tmp_path):
    whole = swept(scenario, directory=tmp_path / "a")
    cases = sorted((tmp_path / "a" / "cases").iterdir())
    assert {path.stem for path in cases} == {cell["case"] for cell in whole["cells"]}
    cases[0].unlink()
    cases[1].write_text("{")
    again = swept(scenario, directory=tmp_path / "a")
    assert json_text(again) == json_text(whole)
    assert counted == {"baselines": 2, "cells": 6 + 2}
    for path in (tmp_path / "a" / "baselines").iterdir():
        path.write_text('{"schema": "specsim-baseline/1", "replications": [1]}')
        cases[0].unlink(missing_ok=True)
    assert json_text(swept(scenario, directory=tmp_path / "a")) == json_text(whole)
    assert counted == {"baselines": 3, "cells": 9}


def test_a_changed_scenario_is_another_case(scenario, tmp_path):
    first = {cell["case"] for cell in swept(scenario)["cells"]}
    other = {cell["case"] for cell in swept(scenario, sets=["run.seed=4"])["cells"]}
    assert not first & other
    calibration = json.loads((ROOT / "calibrations" / "h100-llama-3.1-8b-eagle.json").read_text())
    file = tmp_path / "c.json"
    found = []
    for version in ("a", "b"):
        calibration["provenance"]["source"] += version
        file.write_text(json.dumps(calibration))
        found.append(swept(scenario, VARY[:1], sets=["calibration=c.json"])["cells"][0]["case"])
    assert found[0] != found[1]


def test_stored_replications_are_the_same_bit_by_bit(scenario):
    [cell] = sweep.grid_cells(scenario, ["workload.arrivals={kind: poisson, rate: 9}"], [])
    replications = cell_run.run_baseline(cell)
    text = json.dumps(stored_replications(replications), allow_nan=False)
    read = replications_from(json.loads(text))
    assert json.dumps(stored_replications(read), allow_nan=False) == text
    assert cell_run.run_cell(cell, read) == cell_run.run_cell(cell, replications)


def test_processes_change_nothing(scenario, tmp_path):
    serial = json_text(swept(scenario))
    assert json_text(swept(scenario, jobs=2, directory=tmp_path / "a")) == serial


def test_a_dask_cluster_changes_nothing(scenario):
    distributed = pytest.importorskip("distributed", reason="needs the extra `cluster`")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, scheduler_port=0, host="127.0.0.1"
    ) as cluster:
        there = json_text(swept(scenario, dask=cluster.scheduler_address))
    assert there == json_text(swept(scenario))


def test_a_killed_sweep_goes_on(scenario, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "sim", "sweep", str(scenario), "--out", str(out), "--jobs", "2", "--json"]
    command += [part for vary in (*VARY, "run.seed=1:40") for part in ("--vary", vary)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(out.glob("cases/*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path.name: path.read_bytes() for path in out.glob("cases/*.json")}
    assert 3 <= len(kept) < 240
    document = swept(scenario, (*VARY, "run.seed=1:2"), directory=out)
    assert json_text(document) == json_text(swept(scenario, (*VARY, "run.seed=1:2")))
    assert {name: (out / "cases" / name).read_bytes() for name in kept} == kept


def test_mistakes_of_all_cells_are_told_before_anything_runs(scenario, counted):
    with pytest.raises(InputError) as caught:
        swept(scenario, ("speculation.num_speculative_tokens=64:66", "engine.max_seqs=1,2"))
    told = [str(problem) for problem in caught.value.problems]
    assert [text.split(":")[0] for text in told] == [
        "--vary engine.max_seqs",
        *["--vary speculation.num_speculative_tokens"] * 2,
    ]
    assert "did you mean 'max_num_seqs'?" in told[0]
    assert counted == {"baselines": 0, "cells": 0}


def test_what_a_store_cannot_write_is_told(tmp_path):
    (tmp_path / "cases").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        CaseStore(tmp_path)


def test_the_speed_up_is_above_one_where_it_gains(scenario):
    by_latency = swept(scenario, metric="mean_tpot_ms")
    assert by_latency["speedup"]["metric"] == "mean_tpot_ms"
    assert swept(scenario)["speedup"]["metric"] == "output_throughput"
    for cell in by_latency["cells"]:
        arms = cell["arms"]
        ratio = cell["speedup"]["speculative"]["ratio"]
        assert ratio == pytest.approx(arms["baseline"]["mean_tpot_ms"] / arms["speculative"]["mean_tpot_ms"])


def test_break_even_lies_between_a_gain_and_a_loss(scenario):
    sets = ["calibration.target_per_token_us=4000", "workload.requests=64"]
    document = swept(scenario, ("workload.arrivals.concurrency=1,2,64",), sets=sets)
    ratios = {cell["values"][VARY[1].partition("=")[0]]: cell["speedup"]["speculative"] for cell in document["cells"]}
    [crossing] = document["break_even"]
    low, high = crossing["between"]
    assert crossing["gains"] == "below"
    assert ratios[low]["ratio"] > 1 > ratios[high]["ratio"]
