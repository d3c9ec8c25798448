"""`specsim tune` as a command: one document, files that appear whole, mistakes with exit 2."""

import json

import pytest

from sim.cli.main import main

SCENARIO = """\
calibration: {kind: affine, target_fixed_ms: 6, target_per_token_us: 60, draft_fixed_ms: 0.6, num_gpu_blocks: 9000}
workload:
  requests: 30
  arrivals: {kind: closed, concurrency: 2}
  slices: [{name: a, prompt_tokens: 20, output_tokens: 40, acceptance: {kind: iid, alpha: 0.7}}]
speculation: {method: eagle, num_speculative_tokens: 2}
engine: {max_num_seqs: 8}
arms: {k1: {speculation.num_speculative_tokens: 1}}
"""
QUICK = ("--batch", "2,1", "--replications", "2", "--drafts", "2")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    return path


def test_the_document_is_printed_and_written(scenario, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["tune", str(scenario), *QUICK, "--json", "--out", str(out)]) == 0
    printed, told = capsys.readouterr()
    assert (out / "tune.json").read_text() == printed
    assert [path.name for path in out.iterdir()] == ["tune.json"]
    document = json.loads(printed)
    assert document["schema"] == "specsim-tune/1"
    assert document["concurrencies"] == [1, 2]
    assert document["draft_lengths"] == [0, 1, 2]
    assert "those of the scenario are not used: k1" in told
    assert main(["tune", str(scenario), *QUICK, "--out", str(out)]) == 0
    text, told = capsys.readouterr()
    assert told == ""
    assert text.startswith("Recommended: ")
    assert "--speculative-config '{" in text
    assert "Schedule by batch size, " in text


def test_without_a_choice_the_ladder_ends_at_max_num_seqs(scenario, capsys):
    assert main(["tune", str(scenario), "--set", "engine.max_num_seqs=3", "--replications", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["concurrencies"] == [1, 2, 3]
    assert document["draft_lengths"][-1] == 8
    assert document["scopes"][0]["schedule"]["ranges"][-1][1] == 3


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["--batch", ""], "no list of whole numbers"),
        (["--batch", "0"], "no list of whole numbers"),
        (["--batch", "1,x"], "no list of whole numbers"),
        (["--batch", "9"], "max_num_seqs is 8"),
        (["--batch", ",".join(["1"] * 65)], "at most 64"),
        (["--drafts", "65"], "--drafts"),
        (["--replications", "1"], "--replications"),
        (["--out", ""], "the directory has no name"),
        (["--set", "speculation=null", "--set", "arms={}"], "tune chooses its draft length"),
        (["--set", "engine.max_num_batched_tokens=5"], "of the budget"),
    ],
)
def test_mistakes_end_in_exit_2_with_a_remedy(scenario, capsys, line, says):
    assert main(["tune", str(scenario), *line]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "Traceback" not in err


def test_a_folder_that_cannot_be_written_is_told_before_any_work(scenario, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["tune", str(scenario), "--out", str(tmp_path / "file")]) == 2
    assert "--out" in capsys.readouterr().err
