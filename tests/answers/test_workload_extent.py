"""`duration_s` in whole runs, and traces of every format through the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sim.answers import closed_duration
from sim.answers.run import run_scenario
from sim.cli.main import main

SCENARIO = """\
calibration: {{kind: affine, target_fixed_ms: 10, draft_fixed_ms: 1, host_ms: 0.5}}
workload:
  arrivals: {arrivals}
{extent}
  slices: [{{name: a, {lengths}acceptance: {{kind: per_position, conditional: [0.8, 0.6], sigma: 0.3}}}}]
speculation: {{method: eagle, num_speculative_tokens: 2}}
run: {{replications: 2}}
"""
LENGTHS = "prompt_tokens: 100, output_tokens: {kind: geometric, mean: 40}, "


def written(tmp_path, arrivals, extent="", lengths=LENGTHS):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(arrivals=arrivals, extent=extent, lengths=lengths))
    return path


def run(path, **more):
    return run_scenario(path, keep_tables=2, **more)


@pytest.mark.parametrize("think_s", [0, 0.7])
def test_closed_users_send_until_the_end_of_the_time_and_no_longer(tmp_path, think_s):
    arrivals = f"{{kind: closed, concurrency: 5, think_time_s: {think_s}}}"
    result = run(written(tmp_path, arrivals, "  duration_s: 30"))
    for table in result.tables:
        records = table.records.requests
        assert len(table.requests) == len(records)
        assert records.arrival_ms.max() < 30_000
        assert np.array_equal(records.output_tokens, table.requests.output_tokens)
        ends = np.sort(table.records.delivery_ms(0)[records.finish_step])
        if think_s == 0:  # every user is served until the end, so the last five answers come after it
            assert np.sum(ends >= 30_000) == 5
        assert np.sum(ends + think_s * 1000 < 30_000) == len(records) - 5
    arms = result.document["arms"]
    assert arms["speculative"]["completed"] > 1.15 * arms["baseline"]["completed"]
    assert arms["baseline"]["completed"] == sum(len(t.requests) for t in result.tables if t.name == "baseline")


def test_the_length_of_the_first_list_changes_nothing(tmp_path, monkeypatch):
    path = written(tmp_path, "{kind: closed, concurrency: 5}", "  duration_s: 30")
    documents = []
    for first, per_user in ((256, 4), (6, 1), (5000, 4)):
        monkeypatch.setattr(closed_duration, "_FIRST_LIST", first)
        monkeypatch.setattr(closed_duration, "_REQUESTS_PER_USER", per_user)
        documents.append(run(path).document)
    assert documents[0] == documents[1] == documents[2]


def test_a_duration_is_the_list_that_it_holds(tmp_path):
    arrivals = "{kind: closed, concurrency: 5}"
    timed = run(written(tmp_path, arrivals, "  duration_s: 30"))
    count = len(timed.tables[0].requests)
    listed = run(written(tmp_path, arrivals, f"  requests: {count}"))
    first, other = timed.tables[0].records, listed.tables[0].records
    assert np.array_equal(first.requests.finish_step, other.requests.finish_step)
    assert np.array_equal(first.steps[0].start_ms, other.steps[0].start_ms)


def test_too_many_requests_for_a_replication_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(closed_duration, "MAX_REQUESTS", 300)
    assert main(["run", str(written(tmp_path, "{kind: closed, concurrency: 5}", "  duration_s: 3000"))]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "scenario.yaml:4:15: workload.duration_s: more than 300 requests are sent in that time" in err


def test_requests_that_never_fit_end_a_timed_run(tmp_path, capsys):
    path = written(
        tmp_path, "{kind: closed, concurrency: 5}", "  duration_s: 30", LENGTHS.replace("mean: 40", "mean: 99")
    )
    sets = ["--set", "engine.num_gpu_blocks=3", "--set", "engine.num_gpu_blocks_baseline=3"]
    assert main(["run", str(path), "--json", *sets]) == 0
    arm = json.loads(capsys.readouterr().out)["arms"]["baseline"]
    assert arm["completed"] == 0
    assert arm["failed"] > 0


@pytest.mark.parametrize("kind", ["poisson", "gamma"])
def test_open_arrivals_of_a_duration(tmp_path, kind):
    cv = ", cv: 2" if kind == "gamma" else ""
    result = run(written(tmp_path, f"{{kind: {kind}, rate: 4{cv}}}", "  duration_s: 60"))
    assert {len(t.requests) for t in result.tables if t.name == "baseline"} == {
        len(t.requests) for t in result.tables if t.name == "speculative"
    }
    assert all(table.requests.arrival_ms[-1] < 60_000 for table in result.tables)
    again = run(written(tmp_path, f"{{kind: {kind}, rate: 4{cv}}}", "  duration_s: 60"), jobs=2)
    assert again.document == result.document


def test_a_coarse_clock_is_told_and_its_resolved_scenario_runs_again(tmp_path, monkeypatch):
    rows = "\n".join(f"{second},{100 + row},{20}" for second in range(0, 120, 2) for row in range(4))
    (tmp_path / "log.csv").write_text(f"at;in;out\n{rows}".replace(",", ";"))
    columns = "columns: {arrival: at, prompt_tokens: in, output_tokens: out}"
    document = run(written(tmp_path, f"{{kind: trace, path: log.csv, {columns}}}", lengths="")).document
    assert any("ticks every 2 s" in warning for warning in document["warnings"])
    assert document["arms"]["baseline"]["completed"] == 2 * 240
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "result.json").write_text(json.dumps(document))
    assert run(tmp_path / "elsewhere" / "result.json").document["arms"] == document["arms"]
    kept = run(written(tmp_path, f"{{kind: trace, path: log.csv, {columns}, spread_bursts: no}}", lengths="")).document
    assert not any("ticks" in warning for warning in kept["warnings"])
    assert kept["arms"]["baseline"]["mean_ttft_ms"] == pytest.approx(10.5)  # four prompts in one step of an idle engine
    assert document["arms"]["baseline"]["mean_ttft_ms"] > 11  # some come while others are served
