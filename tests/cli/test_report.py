import json
import sys

import pytest

from sim.cli.main import main
from sim.report.page import write

pytest.importorskip("plotly", reason="plotly, of the extra [plot], is not installed")
SMALL = ["--set", "workload.requests=8", "--set", "run.replications=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "out"
    assert main(["run", *SMALL, "--out", str(path)]) == 0
    return path


def refused(capsys, *line):
    assert main(["report", *map(str, line)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_a_folder_and_its_result_give_the_same_page(capsys, folder, tmp_path):
    capsys.readouterr()
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert main(["report", str(folder / "result.json"), "--out", str(tmp_path / "own.html")]) == 0
    assert (tmp_path / "own.html").read_bytes() == (folder / "report.html").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["own.html"]


def test_what_run_prints_as_json_has_a_page(capsys, tmp_path):
    assert main(["run", *SMALL, "--json"]) == 0
    (tmp_path / "answer.json").write_text(capsys.readouterr().out, "utf-8")
    assert main(["report", str(tmp_path / "answer.json")]) == 0
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "has no schema"),
        ('{"schema": "specsim-result/9"}', "has the schema 'specsim-result/9'"),
        ('{"schema": ["specsim-result/1"]}', "has the schema"),
        ('{"schema": "specsim-result/1"}', "has a part that is missing"),
        ('{"schema": "specsim-sweep/1", "scenario": 3}', "has a part that is missing"),
        ('{"schema": "specsim-tune/1", "scopes": {}}', "has a part that is missing"),
        ('{"schema": "specsim-capacity/1", "arms": []}', "has a part that is missing"),
        ('{"schema": NaN}', "holds NaN"),
        ("[" * 100_000, "is nested too deeply"),
        ("", "is no JSON"),
    ],
)
def test_what_is_no_result_is_refused(capsys, tmp_path, text, says):
    path = tmp_path / "result.json"
    path.write_text(text, "utf-8")
    assert says in refused(capsys, path)
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]


def test_a_damaged_result_is_refused_wherever_the_damage_is(capsys, folder, tmp_path):
    document = json.loads((folder / "result.json").read_text("utf-8"))
    path = tmp_path / "result.json"
    for damage in (
        lambda d: d["arms"].pop("baseline"),
        lambda d: d["arms"]["speculative"].update(time_share=None),
        lambda d: d["arms"]["speculative"].update(mean_tpot_ms="fast"),
        lambda d: d["scenario"].update(workload=[]),
        lambda d: d.update(comparison=7),
        lambda d: d.update(warnings=None),
    ):
        damaged = json.loads(json.dumps(document))
        damage(damaged)
        path.write_text(json.dumps(damaged), "utf-8")
        assert "result: has a part that is missing" in refused(capsys, path)


def test_a_folder_with_several_results_is_refused(capsys, folder, tmp_path):
    for name in ("result.json", "tune.json"):
        (tmp_path / name).write_bytes((folder / "result.json").read_bytes())
    assert "the folder holds result.json and tune.json" in refused(capsys, tmp_path)
    (tmp_path / "result.json").unlink()
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"


def test_paths_that_cannot_be_read_or_written_are_refused(capsys, folder, tmp_path):
    assert "No such file" in refused(capsys, tmp_path / "nothing.json")
    assert "No such file" in refused(capsys, tmp_path)
    assert "is a directory" in refused(capsys, folder, "--out", tmp_path)
    assert "cannot be written" in refused(capsys, folder, "--out", tmp_path / "no" / "page.html")
    assert "is the result itself" in refused(capsys, folder, "--out", folder / "result.json")
    assert "has no name" in refused(capsys, "")
    assert "has no name" in refused(capsys, folder, "--out", "")
    assert list(tmp_path.iterdir()) == []


def test_without_plotly_the_remedy_is_told(capsys, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    said = refused(capsys, folder, "--out", tmp_path / "page.html")
    assert "plotly is not installed" in said
    assert "install" in said
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_half_way_leaves_the_old_one(capsys, folder, tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("old", "utf-8")

    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write.os, "replace", full)
    assert "No space left on device" in refused(capsys, folder, "--out", target)
    assert target.read_text("utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
