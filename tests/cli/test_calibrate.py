import json
import re
import statistics
import sys

import pytest
from table_file import CAPTURED, write_table

from sim.cli.main import main
from sim.cost.compile import compile_costs
from sim.cost.memory import blocks_from_memory
from sim.cost.step_costs import StepShape
from sim.inputs.calibration import CalibrationFile
from sim.inputs.catalog import calibration_names, calibration_path
from sim.inputs.load_calibration import open_calibration
from sim.inputs.source import Source

LINE = re.compile(r"specsim calibrate show:1:1: \S+: .+, .+, .+")


def answer(capsys, *line):
    assert main(list(line)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def shown(capsys, reference):
    return json.loads(answer(capsys, "calibrate", "show", reference, "--json"))


def used(reference):
    return open_calibration(reference, Source("t", calibration_path(calibration_names()[0]).parent, {}, {}, {})).used


def step_ms(terms, asynchronous):
    device = terms.target + terms.kv_update + terms.sampling + terms.draft
    return max(terms.host, device) if asynchronous else terms.host + device


def test_list_has_every_shipped_calibration(capsys):
    text = answer(capsys, "calibrate", "list")
    assert [line.split()[0] for line in text.splitlines()[1:]] == calibration_names()
    entries = json.loads(answer(capsys, "calibrate", "list", "--json"))["calibrations"]
    for entry in entries:
        stored = CalibrationFile.model_validate_json(calibration_path(entry["name"]).read_bytes())
        assert (entry["kind"], entry["target"], entry["gpu"]) == (
            stored.kind,
            stored.models.target,
            stored.hardware.gpu,
        )
        assert (entry["draft"], entry["form"]) == (stored.models.draft, stored.costs.form)


@pytest.mark.parametrize("name", calibration_names())
def test_show_of_every_shipped_calibration(capsys, name):
    text = answer(capsys, "calibrate", "show", name)
    document = shown(capsys, name)
    for entry in (*document["provenance"]["measured"], *document["provenance"]["not_measured"]):
        assert f"- {entry}\n" in text
    calibration = used(name)
    for step in document["steps"]:
        drafts, batch = step["drafts"], step["batch"]
        shape = StepShape(batch, batch * drafts, batch * step["context_tokens"], [], 0, 0)
        terms = compile_costs(calibration, drafts).terms(shape, drafts)
        assert sum(step["parts"].values()) == pytest.approx(sum(terms[:2]) + sum(terms[3:6]))
        assert step["step_ms"] == pytest.approx(step_ms(terms, calibration.async_scheduling))
    if document["memory"]:
        blocks = blocks_from_memory(calibration.memory, 0.9, 16, with_draft=True)
        assert document["memory"]["num_gpu_blocks"] == blocks
        assert f"{blocks:,}" in text


def test_rounds_show_the_cells_that_were_measured(capsys):
    steps = shown(capsys, "h100-llama-3.1-8b-eagle-rounds")["steps"]
    cells = {(step["batch"], step["drafts"]): step for step in steps}
    assert [cells[32, drafts]["step_ms"] for drafts in (0, 1, 3, 4, 5, 7)] == [7.64, 8.97, 10.78, 11.79, 12.81, 14.86]
    assert [key for key, step in cells.items() if step["extrapolated"]] == [(64, 7)]


def test_additivity_is_signed(capsys, tmp_path):
    path = write_table(tmp_path / "own.json")
    additivity = shown(capsys, path)["additivity"]
    errors = []
    for step in additivity["steps"]:
        drafts = step["query"] - 1
        shape = StepShape(step["batch"], step["batch"] * drafts, step["batch"] * step["context"], [], 0, 0)
        terms = compile_costs(used(path), drafts).terms(shape, drafts)
        errors.append(100 * (step_ms(terms, asynchronous=False) / step["ms"] - 1))
        assert step["error_percent"] == pytest.approx(errors[-1])
    assert min(errors) != max(errors)
    assert additivity["median_error_percent"] == pytest.approx(statistics.median(errors))
    text = answer(capsys, "calibrate", "show", path)
    assert all(f"{error:+.1f} %" in text for error in errors)


def test_the_plot_has_stairs_and_marks(capsys, tmp_path):
    path = write_table(tmp_path / "own.json")
    curve = shown(capsys, path)["curve"]
    assert curve["capture_sizes"] == CAPTURED
    by_row = dict(zip(curve["rows"], zip(curve["ms"], curve["graph"], strict=True), strict=True))
    assert by_row[256][1] == "full"
    above = min(row for row in by_row if row > 256)
    assert by_row[above][1] == "eager"
    assert by_row[above][0] > by_row[256][0] + 8
    lines = answer(capsys, "calibrate", "show", path).splitlines()
    (axis,) = [line for line in lines if "+" in line and "^" in line and "---" in line]
    assert axis.count("^") == len(CAPTURED)


def test_a_flat_plot_without_marks(capsys, tmp_path):
    flat = {"eager": {"rows": [1], "ms": [5.0]}}
    nothing = dict.fromkeys(("head", "decode_attention", "sampling", "kv_update", "draft", "host", "graphs"))
    path = write_table(tmp_path / "own.json", dense=flat, **nothing, whole_steps=[])
    text = answer(capsys, "calibrate", "show", path)
    assert "^" not in text
    assert "has no whole steps" in text


def test_a_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `plot`")
    picture = tmp_path / "steps.png"
    answer(capsys, "calibrate", "show", write_table(tmp_path / "own.json"), "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    for wrong in (tmp_path / "none" / "steps.png", tmp_path / "steps.nothing"):
        assert main(["calibrate", "show", calibration_names()[0], "--plot", str(wrong)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert LINE.fullmatch(err.strip())


def test_a_picture_without_matplotlib_says_what_to_do(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["calibrate", "show", calibration_names()[0], "--plot", str(tmp_path / "x.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert LINE.fullmatch(err.strip())
    assert "matplotlib is not installed" in err


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("h100-llama-3.1-8b-eagel", "did you mean 'h100-llama-3.1-8b-eagle'?"),
        ("./nowhere.json", "No such file"),
        ("/", "is a directory"),
    ],
)
def test_a_calibration_that_is_not_there(capsys, reference, says):
    assert main(["calibrate", "show", reference]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert LINE.fullmatch(err.strip())
    assert says in err


def test_a_wrong_file_points_into_it(capsys, tmp_path):
    path = write_table(tmp_path / "own.json", head={"rows": [2, 1], "ms": [1, 1]})
    assert main(["calibrate", "show", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"{re.escape(path)}:1:\d+: costs\.head\.rows\.1: 1 after 2, .+, .+\n", err)


def test_calibrate_alone_is_its_help(capsys):
    text = answer(capsys, "calibrate")
    assert "list" in text
    assert "show" in text


def test_a_picture_replaces_only_a_regular_file(capsys, tmp_path):
    own = write_table(tmp_path / "own.json")
    for wrong, what in ((tmp_path, "is no regular file"), (own, "is one of the files read")):
        assert main(["calibrate", "show", own, "--plot", str(wrong)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"{wrong}:1:1: --plot: {what}, ")
    assert json.loads((tmp_path / "own.json").read_text())["name"] == "own"
