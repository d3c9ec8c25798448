"""`specsim acceptance`, and scenarios with logs and profiles, as a user meets them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sim.cli.main import main
from sim.inputs.catalog import profile_names

CHAIN = "eagle-chain-llama-3-8b"
SCENARIO = {
    "calibration": {"kind": "affine", "target_fixed_ms": 8, "target_per_token_us": 20, "draft_fixed_ms": 1},
    "workload": {
        "requests": 60,
        "arrivals": {"kind": "closed", "concurrency": 8},
        "slices": [{"name": "chat", "prompt_tokens": 100, "output_tokens": 60}],
    },
    "speculation": {"method": "eagle", "num_speculative_tokens": 3},
    "engine": {"num_gpu_blocks": 4000},
}


def answer(capsys, *line):
    code = main(list(line))
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def refused(capsys, *line):
    assert main(list(line)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "rounds.jsonl"
    lines = []
    for request in range(40):
        hard = rng.normal(0, 0.5)
        accepted = np.minimum(rng.geometric(1 / (1 + np.exp(hard)), 30) - 1, 4)
        category = ("math", "qa")[request % 2]
        lines.append(json.dumps({"request_id": request, "category": category, "k": 4, "accepted": accepted.tolist()}))
    path.write_text("\n".join(lines))
    return path


def scenario(tmp_path, acceptance, **slice_changes):
    data = json.loads(json.dumps(SCENARIO))
    part = data["workload"]["slices"][0]
    part |= {"acceptance": acceptance} | slice_changes
    data["workload"]["slices"][0] = {key: value for key, value in part.items() if value is not None}
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(data))
    return path


def run(capsys, path, *more):
    assert main(["run", str(path), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_list(capsys):
    text = answer(capsys, "acceptance", "list")
    listed = json.loads(answer(capsys, "acceptance", "list", "--json"))["profiles"]
    assert [one["name"] for one in listed] == profile_names()
    assert all(one["name"] in text for one in listed)


def test_show(capsys):
    text = answer(capsys, "acceptance", "show", CHAIN, "--task", "math")
    document = json.loads(answer(capsys, "acceptance", "show", CHAIN, "--task", "math", "--json"))
    assert document["task"] == "math"
    assert document["survival"] == pytest.approx(np.cumprod(document["conditional"]))
    assert f"{document['survival'][1]:.3f}" in text
    per_round = [row["tokens_per_round"] for row in document["lengths"]]
    first = [row["first_position_acceptance"] for row in document["lengths"]]
    assert per_round == sorted(per_round)
    assert first[0] > first[-1]  # with memory, longer drafts start more rounds at hard positions
    assert [row["beyond_measured_depth"] for row in document["lengths"]] == [False] * 6 + [True] * 2
    assert "#" * 10 in text


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_can_be_shown(capsys, name):
    assert name in answer(capsys, "acceptance", "show", name)


def test_fit_prints_and_writes_a_profile_that_scenarios_take(capsys, tmp_path, log):
    out = tmp_path / "own.json"
    before = sorted(tmp_path.iterdir())
    text = answer(capsys, "acceptance", "fit", str(log))
    assert sorted(tmp_path.iterdir()) == before
    assert "40 sequences, 1,160 rounds" in text
    assert "written" in answer(capsys, "acceptance", "fit", str(log), "--out", str(out), "--name", "own")
    assert json.loads(answer(capsys, "acceptance", "show", str(out), "--task", "qa", "--json"))["name"] == "own"
    document = run(capsys, scenario(tmp_path, {"kind": "named", "name": "own.json", "task": "math"}))
    assert document["arms"]["speculative"]["spec_decode_acceptance_length"] > 1.3
    assert document["scenario"]["workload"]["slices"][0]["acceptance"]["name"] == str(out)  # runs from any folder


def test_replay_takes_lengths_from_the_log(capsys, tmp_path, log):
    path = scenario(tmp_path, {"kind": "replay", "path": "rounds.jsonl"}, output_tokens=None)
    document = run(capsys, path, "--set", "speculation.num_speculative_tokens=4")
    lengths = {
        1 + sum(one) + len(one) for line in log.read_text().splitlines() for one in [json.loads(line)["accepted"]]
    }
    assert document["arms"]["baseline"]["total_output_tokens"] >= 60 * min(lengths)
    assert not any("reconstructed" in warning for warning in document["warnings"])
    rounds = document["arms"]["speculative"]["spec_decode_num_drafts"]
    assert rounds == 60 * 30  # every sequence of the log has 30 rounds
    other = run(capsys, path)
    assert any("at 3," in warning and "reconstructed" in warning for warning in other["warnings"])
    assert other["arms"]["baseline"] == document["arms"]["baseline"]


def test_replay_beside_stated_lengths_says_what_is_lost(capsys, tmp_path, log):
    path = scenario(tmp_path, {"kind": "replay", "path": "rounds.jsonl", "task": "qa"}, output_tokens=500)
    document = run(capsys, path)
    assert any("continued with others of the log" in warning for warning in document["warnings"])
    assert document["arms"]["baseline"]["total_output_tokens"] == 60 * 500


def test_arms_may_replace_a_replay(capsys, tmp_path, log):
    path = scenario(tmp_path, {"kind": "replay", "path": "rounds.jsonl"}, output_tokens=None)
    data = json.loads(path.read_text())
    data["arms"] = {"flat": {"acceptance": {"kind": "iid", "alpha": 0.5}}}
    path.write_text(json.dumps(data))
    arms = run(capsys, path)["arms"]
    assert arms["flat"]["total_output_tokens"] == arms["speculative"]["total_output_tokens"]
    answer(capsys, "explain", str(path), "--arm", "flat")


def test_a_tree_and_a_look_up_are_named(capsys, tmp_path):
    tree = run(capsys, scenario(tmp_path, {"kind": "named", "name": "eagle-1-tree-vicuna-7b"}))
    assert any("draft tree" in warning for warning in tree["warnings"])
    lookup = run(capsys, scenario(tmp_path, {"kind": "named", "name": "ngram-2-4-vicuna-7b"}))
    assert any("method eagle with the acceptance of a look-up" in warning for warning in lookup["warnings"])


def test_restart_effect_is_named_only_where_it_is_absent(capsys, tmp_path):
    def absent(acceptance):
        warnings = run(capsys, scenario(tmp_path, acceptance))["warnings"]
        return any("restart effect" in warning for warning in warnings)

    assert not absent({"kind": "named", "name": CHAIN})
    assert absent({"kind": "named", "name": "eagle-3-llama-3.1-8b-published"})


@pytest.mark.parametrize(
    ("acceptance", "says"),
    [
        ({"kind": "named", "name": "eagle-chain"}, "acceptance.name: unknown profile 'eagle-chain'"),
        (
            {"kind": "named", "name": CHAIN, "task": "poems"},
            "acceptance.task: profile eagle-chain-llama-3-8b has no task",
        ),
        ({"kind": "named", "name": "gone.json"}, "acceptance.name: No such file"),
        ({"kind": "replay", "path": "gone.jsonl"}, "acceptance.path: No such file"),
        (
            {"kind": "replay", "path": "rounds.jsonl", "task": "poems"},
            "acceptance.task: the log has no category 'poems'",
        ),
        ({"kind": "replay"}, "acceptance.path: is missing"),
        ({"kind": "ngram", "match_after_match": 0.5, "match_after_none": 2, "conditional": [1]}, "match_after_none"),
        (
            {
                "kind": "ngram",
                "match_after_match": 0,
                "match_after_none": 0,
                "conditional": [1],
                "proposed": [1, 0.4, 0.5],
            },
            "acceptance.proposed.2: 0.5 is too much",
        ),
        (
            {"kind": "ngram", "match_after_match": 0, "match_after_none": 0, "conditional": [1, 1], "fitted_k": 1},
            "acceptance.fitted_k: 1 with 2 positions",
        ),
    ],
)
def test_mistakes(capsys, tmp_path, log, acceptance, says):
    path = scenario(tmp_path, acceptance)
    err = refused(capsys, "run", str(path))
    assert says in err
    assert err.startswith(f"{path}:1:")


def test_a_broken_log_is_told_in_its_own_file(capsys, tmp_path, log):
    log.write_text(log.read_text() + '\n{"k": 4, "accepted": [5]}')
    err = refused(capsys, "run", str(scenario(tmp_path, {"kind": "replay", "path": "rounds.jsonl"})))
    assert err.startswith(f"{log}:41:2: k: entry 1: 5 of 4 drafts")
    assert refused(capsys, "acceptance", "fit", str(log)).startswith(f"{log}:41:2: k: ")


def test_what_fit_and_show_refuse(capsys, tmp_path, log):
    assert "unknown profile" in refused(capsys, "acceptance", "show", "eagel")
    assert "has no task 'x'" in refused(capsys, "acceptance", "show", CHAIN, "--task", "x")
    assert "No such file" in refused(capsys, "acceptance", "fit", str(tmp_path / "gone"))
    assert "what is read is never written over" in refused(capsys, "acceptance", "fit", str(log), "--out", str(log))
    short = tmp_path / "short.jsonl"
    short.write_text('{"k": 4, "accepted": [1, 2]}')
    assert "at least 10 sequences" in refused(capsys, "acceptance", "fit", str(short))
