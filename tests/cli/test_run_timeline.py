"""`specsim run --timeline` from a scenario to the file: the steps in it are those of the first replication's table."""

from __future__ import annotations

import csv
import json

import pytest

from sim.cli.main import main

SCENARIO = """
calibration: {kind: affine, target_fixed_ms: 6, target_per_token_us: 25, draft_fixed_ms: 0.8, host_ms: 0.9}
workload:
  requests: 12
  arrivals: {kind: poisson, rate: 20}
  slices: [{name: chat, prompt_tokens: 300, output_tokens: 25, acceptance: {kind: iid, alpha: 0.7}}]
speculation: {method: eagle, num_speculative_tokens: 3}
engine: {style: vllm, max_num_seqs: 8, max_num_batched_tokens: 512}
run: {seed: 3, replications: 3}
"""


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["replication"] == "0"]


def begun(path):
    """Slices that begin on the thread of the steps, by process: [(name, us, arguments)]."""
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    begins = [e for e in events if e["ph"] == "B" and e["tid"] == e["pid"]]
    return {
        name: [(e["name"], e["ts"], e.get("args", {})) for e in begins if e["pid"] == pid]
        for pid, name in named.items()
    }


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("replicas", ["1", "2"])
def test_the_timeline_is_the_first_replication(tmp_path, capsys, jobs, replicas):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    out, timeline, alone = tmp_path / "out", tmp_path / "t.json", tmp_path / "alone.json"
    line = ["run", str(tmp_path / "s.yaml"), "--json", "--jobs", jobs, "--set", f"engine.replicas={replicas}"]
    assert main([*line, "--out", str(out), "--timeline", str(timeline)]) == 0
    answer = capsys.readouterr().out
    assert answer == (out / "result.json").read_text("utf-8")
    assert main([*line, "--timeline", str(alone)]) == 0
    assert capsys.readouterr().out == answer
    assert main(line) == 0
    assert capsys.readouterr().out == answer
    assert alone.read_bytes() == timeline.read_bytes()
    slices = begun(timeline)
    assert len(slices) == 2 * int(replicas)
    for arm in ("baseline", "speculative"):
        rows = table(out / f"steps-{arm}.csv")
        for replica in range(int(replicas)):
            process = arm if replicas == "1" else f"{arm}, replica {replica}"
            told = [(args["step"], us, args["running"]) for name, us, args in slices[process] if name.endswith("step")]
            own = [row for row in rows if row["replica"] == str(replica)]
            assert told == [
                (int(row["step"]), pytest.approx(1000 * float(row["start_ms"]), abs=1e-6), int(row["running"]))
                for row in own
            ]
            assert own
