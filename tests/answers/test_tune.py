"""`specsim tune` against a published table's own arithmetic, its own break-even points, and slices that disagree."""

import json
from pathlib import Path

import numpy as np
import pytest

from sim.answers.tune import tune_scenario
from sim.answers.tune_batches import alpha_of
from sim.inputs.errors import InputError
from sim.report.json_text import json_text
from sim.report.tune_text import tune_text

CALIBRATIONS = Path(__file__).resolve().parents[2] / "calibrations"

# vLLM pull request #32374: unconditional acceptance by draft position, beside its table of round times.
EAGLE = [0.68, 0.39, 0.20, 0.10, 0.06, 0.03, 0.02]
EAGLE3 = [0.76, 0.54, 0.39, 0.28, 0.21, 0.15, 0.12]
TABLE = """\
calibration: {calibration}
workload:
  requests: 40
  arrivals: {{kind: closed, concurrency: 1}}
  slices:
    - name: a
      prompt_tokens: 1
      output_tokens: 300
      acceptance: {{kind: per_position, unconditional: {rates}}}
speculation: {{method: eagle, num_speculative_tokens: 7}}
engine: {{max_num_seqs: 64}}
"""
AFFINE = """\
calibration: {{kind: affine, target_fixed_ms: 6, target_per_token_us: 60, draft_fixed_ms: 0.6, num_gpu_blocks: 100000}}
workload:
  requests: {requests}
  arrivals: {{kind: closed, concurrency: {users}}}
  slices:
{slices}
speculation: {{method: eagle, num_speculative_tokens: 3}}
engine: {{max_num_seqs: 64, replicas: {replicas}}}
price: {{usd_per_gpu_hour: 3.5}}
"""
SLICE = """\
    - {{name: {name}, share: {share}, prompt_tokens: 20, output_tokens: 120, success_rate: 0.8,
       acceptance: {{kind: iid, alpha: {alpha}}}}}"""


def affine(folder, alphas, users=16, replicas=1, requests=200):
    slices = [SLICE.format(name=name, share=share, alpha=alpha) for name, (share, alpha) in alphas.items()]
    path = folder / "s.yaml"
    path.write_text(AFFINE.format(slices="\n".join(slices), users=users, replicas=replicas, requests=requests))
    return path


@pytest.mark.parametrize(
    ("name", "rates"), [("h100-llama-3.1-8b-eagle-rounds", EAGLE), ("h100-llama-3.1-8b-eagle3-rounds", EAGLE3)]
)
def test_the_best_length_is_that_of_the_published_table(tmp_path, name, rates):
    path = tmp_path / "s.yaml"
    path.write_text(TABLE.format(calibration=name, rates=rates))
    costs = json.loads((CALIBRATIONS / f"{name}.json").read_text())["costs"]
    measured = [0, 1, 3, 4, 5, 7]
    assert costs["drafts"] == measured
    tokens = 1 + np.cumsum([0, *rates])
    document = tune_scenario(path, batches=[1, 16, 64], replications=6)
    for part in document["scopes"][0]["by_concurrency"]:
        times = costs["ms"][costs["batch"].index(part["concurrency"])]
        known = [k for k, ms in zip(measured, times, strict=True) if ms is not None]
        round_ms = np.interp(range(max(known) + 1), known, [ms for ms in times if ms is not None])
        round_ms[2] = (times[1] + times[2]) / 2
        speed = tokens[: len(round_ms)] / round_ms
        best = int(np.argmax(speed))
        within_noise = {part["best"]["num_speculative_tokens"], *part["best"]["ties"]}
        assert best in within_noise, part["concurrency"]
        for k in within_noise:  # noise hides no more than a percent
            assert k >= len(speed) or speed[k] > 0.99 * speed[best]
        for row in part["fixed"][: len(speed)]:
            k = row["num_speculative_tokens"]
            assert row["ratio_to_off"]["ratio"] == pytest.approx(speed[k] / speed[0], rel=0.03)
        assert [row["p_committed"] for row in part["marginal"]] == pytest.approx(rates, abs=0.02)
    assert document["recommendation"]["kind"] == "fixed"


def test_break_even_acceptance_is_where_simulated_gains_vanish(tmp_path):
    path = affine(tmp_path, {"a": (1.0, 0.5)})
    (part,) = tune_scenario(path, batches=[16], most_drafts=1, replications=3)["scopes"][0]["by_concurrency"]
    alpha = part["break_even_acceptance"]["alpha"]
    assert 0 < alpha < 1
    for here, verdict in ((alpha - 0.05, "worse"), (alpha + 0.05, "better")):
        path = affine(tmp_path, {"a": (1.0, here)})
        (part,) = tune_scenario(path, batches=[16], most_drafts=1, replications=3)["scopes"][0]["by_concurrency"]
        assert part["fixed"][1]["ratio_to_off"]["verdict"] == verdict


def test_alpha_of_tokens_per_round():
    assert alpha_of(1 + 0.5 + 0.25, 2) == pytest.approx(0.5)
    assert alpha_of(0.9, 2) == 0
    assert alpha_of(3.01, 2) is None
    assert alpha_of(3, 2) == pytest.approx(1)


def test_break_even_concurrency_and_the_schedule_agree_with_simulation(tmp_path):
    path = affine(tmp_path, {"a": (1.0, 0.4)})
    document = tune_scenario(path, batches=[1, 64], most_drafts=2, replications=3)
    (scope,) = document["scopes"]
    even = scope["break_even_concurrency"]
    assert 1 <= even["pays_up_to"] < even["off_from"] <= 64
    first, last = scope["by_concurrency"]
    assert first["reached_0"] is None  # nobody would go to 0 there
    assert last["best"]["num_speculative_tokens"] == 0
    assert last["reached_0"]["ratio_to_off"]["verdict"] == "worse"  # the drafter's first pass is still paid
    ranges = scope["schedule"]["ranges"]
    assert ranges[0][0] == 1
    assert ranges[-1][1] == 64
    for change in scope["schedule"]["changes"]:
        assert change["low"] <= change["last"] <= change["high"]
    assert document["schedule"]["recommended"] is (document["recommendation"]["kind"] == "schedule")
    assert any("reaches 0" in reason for reason in document["schedule"]["reasons"]) == (ranges[-1][2] == 0)
    again = tune_scenario(path, batches=[1, 64], most_drafts=2, replications=3, jobs=2)
    assert json_text(again) == json_text(document)


def test_a_slice_that_loses_is_shown_priced_and_mended_by_pools(tmp_path):
    path = affine(tmp_path, {"code": (0.7, 0.9), "poetry": (0.3, 0.02)}, users=64, replicas=4, requests=500)
    document = tune_scenario(path, batches=[16], most_drafts=4, replications=4)
    shared = document["own_traffic"]["best_fixed"]
    assert shared > 0
    assert document["own_traffic"]["ratio_to_off"][f"k{shared}"]["verdict"] == "better"
    assert document["losing_slices"] == ["poetry"]
    by_arm = document["slices"]["poetry"]
    assert by_arm[f"k{shared}"]["effect"] == "loses"
    price = by_arm[f"k{shared}"]["usd_per_successful_task"]
    assert price["value"] > by_arm["off"]["usd_per_successful_task"]["value"]
    assert price["verdict"] == "worse"
    given = document["recommendation"]
    assert given["kind"] == "pools"
    assert document["pools"]["losing_slices"] == []
    pools = {tuple(pool["slices"]): pool for pool in given["pools"]}
    assert pools["poetry",]["num_speculative_tokens"] == 0
    assert pools["code",]["num_speculative_tokens"] > 0
    assert sum(pool["replicas"] for pool in given["pools"]) == 4
    mended = document["pools"]["slices"]["poetry"]["pools"]
    assert mended["usd_per_successful_task"]["value"] < price["value"]
    assert [flags["recommended"] for flags in document["flags"]] == [True, True, False]
    text = tune_text(document)
    assert text.startswith("Recommended: pools")
    assert "Slice poetry with an engine of its own" in text


def test_open_traffic_is_judged_by_latency_and_a_trace_by_its_own_lengths(tmp_path):
    path = affine(tmp_path, {"a": (1.0, 0.8)})
    sets = ["workload.arrivals={kind: poisson, rate: 4}", "workload.requests=60"]
    document = tune_scenario(path, sets, batches=[2], most_drafts=1, replications=2)
    assert document["own_traffic"]["objective"] == "mean_e2el_ms"
    trace = tmp_path / "t.csv"
    trace.write_text("arrival,input,output\n" + "".join(f"{i},{10 + i % 7},{20 + i % 11}\n" for i in range(40)))
    columns = "{arrival: arrival, prompt_tokens: input, output_tokens: output, arrival_unit: s}"
    text = path.read_text().replace("prompt_tokens: 20, output_tokens: 120, ", "").replace("  requests: 200\n", "")
    path.write_text(text)
    sets = [f"workload.arrivals={{kind: trace, path: t.csv, format: csv, columns: {columns}}}"]
    document = tune_scenario(path, sets, batches=[2], most_drafts=1, replications=2)
    (part,) = document["scopes"][0]["by_concurrency"]
    assert part["fixed"][1]["committed_tokens_per_round"] == pytest.approx(1.8, rel=0.05)


@pytest.mark.parametrize(
    ("sets", "batches", "says"),
    [
        (["speculation=null"], None, "speculation: is missing, tune chooses its draft length"),
        ([], [65], "--batch: 65 requests in a batch, max_num_seqs is 64"),
        (["engine.max_num_batched_tokens=3"], [1], "tokens of the budget"),
    ],
)
def test_what_cannot_be_tuned_is_told(tmp_path, sets, batches, says):
    path = affine(tmp_path, {"a": (1.0, 0.5)})
    with pytest.raises(InputError, match=says):
        tune_scenario(path, sets, batches=batches)
