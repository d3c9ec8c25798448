"""`specsim calibrate analytic`: a file that loads, or every mistake at once."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

from sim.cli.calibrate_analytic import analytic
from sim.inputs.errors import InputError
from sim.inputs.load_calibration import load_calibration
from sim.inputs.source import Source

CONFIGS = Path(__file__).resolve().parents[1] / "data" / "model_configs"
EIGHT, ONE, SEVENTY = (str(CONFIGS / f"llama-{size}.json") for size in ("3.1-8b", "3.2-1b", "3.3-70b"))


def answer(*arguments):
    return analytic.main(list(arguments), standalone_mode=False)


def problems(*arguments):
    with pytest.raises(InputError) as caught:
        answer(*arguments)
    return caught.value.problems


def load(path):
    return load_calibration(path.name, Source("scenario.yaml", path.parent, {}, {}, {}))


def test_a_file_that_loads(tmp_path):
    path = tmp_path / "mine.json"
    assert str(path) in answer("--gpu", "H200", "--model", EIGHT, "--draft-model", ONE, "--out", str(path))
    calibration = load(path)
    assert calibration.name == "analytic-h200-llama-3.1-8b-llama-3.2-1b"
    assert calibration.models.draft == "llama-3.2-1b"
    assert [one.name for one in tmp_path.iterdir()] == ["mine.json"]


def test_stdout_is_the_file(tmp_path):
    arguments = ("--gpu", "l4", "--model", EIGHT, "--eagle", "--dtype", "fp8", "--tensor-parallel", "2")
    text = answer(*arguments, "--name", "mine")
    answer(*arguments, "--name", "mine", "--out", str(tmp_path / "a.json"))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    if f'"date": "{today}"' in text:  # not across midnight
        assert text == (tmp_path / "a.json").read_text("utf-8")
    calibration = load(tmp_path / "a.json")
    assert (calibration.name, calibration.models.dtype) == ("mine", "fp8")


def test_models_are_named_as_their_files_say(tmp_path):
    folder = tmp_path / "My-Model"
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(Path(ONE).read_text("utf-8"), "utf-8")
    assert '"name": "analytic-h100-my-model"' in answer("--gpu", "h100", "--model", str(config))
    config.write_text(config.read_text("utf-8").replace("{", '{"_name_or_path": "org/Other-1B",', 1), "utf-8")
    assert '"target":"Other-1B"' in answer("--gpu", "h100", "--model", str(config))


def test_the_dtype_is_the_models_own(tmp_path):
    config = tmp_path / "half.json"
    config.write_text(Path(ONE).read_text("utf-8").replace("bfloat16", "float16"), "utf-8")
    assert '"dtype":"fp16"' in answer("--gpu", "h100", "--model", str(config))
    assert '"dtype":"bf16"' in answer("--gpu", "h100", "--model", ONE)


def test_every_mistake_at_once(tmp_path):
    found = problems("--gpu", "h10", "--model", str(tmp_path / "no.json"), "--draft-model", ONE, "--eagle")
    assert {problem.field for problem in found} == {"--gpu", "--eagle", "file"}
    assert any(problem.remedy == "did you mean 'h100'?" for problem in found)


def test_a_gpu_without_fp8():
    (found,) = problems("--gpu", "a100", "--model", EIGHT, "--dtype", "fp8")
    assert found.field == "--dtype"


def test_a_size_that_does_not_divide():
    found = problems("--gpu", "h100", "--model", SEVENTY, "--tensor-parallel", "3")
    assert {problem.file for problem in found} == {SEVENTY}
    assert all(problem.line > 1 for problem in found)


def test_weights_that_do_not_fit():
    (found,) = problems("--gpu", "l4", "--model", SEVENTY)
    assert (found.file, found.field) == (SEVENTY, "--gpu")


@pytest.mark.parametrize("out", ["", "missing/a.json"])
def test_a_file_that_cannot_be_written(tmp_path, out):
    (found,) = problems("--gpu", "h100", "--model", EIGHT, "--out", str(tmp_path / out))
    assert found.field == "--out"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"torch_dtype": "float32"}, "torch_dtype"), ({"quantization_config": {"bits": 4}}, "quantization_config")],
)
def test_the_dtype_is_given_where_the_models_is_not_16_bit(tmp_path, changes, field):
    config = tmp_path / "other.json"
    config.write_text(json.dumps(json.loads(Path(ONE).read_text("utf-8")) | changes, indent=1), "utf-8")
    (found,) = problems("--gpu", "h100", "--model", str(config))
    assert (found.file, found.field) == (str(config), field)
    assert "--dtype bf16" in found.remedy
    assert '"dtype":"bf16"' in answer("--gpu", "h100", "--model", str(config), "--dtype", "bf16")


def test_only_a_regular_file_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for out in ("pipe", "link", "."):
        (found,) = problems("--gpu", "h100", "--model", EIGHT, "--out", str(tmp_path / out))
        assert (found.field, found.what) == ("--out", "is no regular file")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path, exists):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.json", tmp_path / "b.json"
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    assert str(link) in answer("--gpu", "h100", "--model", EIGHT, "--out", str(link))
    assert link.is_symlink()
    assert load(target).name == "analytic-h100-llama-3.1-8b"
    assert [one.name for one in target.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize("linked", [True, False])
def test_a_model_is_never_written_over(tmp_path, linked):
    config, out = tmp_path / "config.json", tmp_path / "out.json"
    config.write_bytes(Path(ONE).read_bytes())
    if linked:
        out.symlink_to(config)
    arguments = (
        "--gpu",
        "h100",
        "--model",
        EIGHT,
        "--draft-model",
        str(config),
        "--out",
        str(out if linked else config),
    )
    (found,) = problems(*arguments)
    assert (found.field, found.what) == ("--out", "is one of the files read")
    assert config.read_bytes() == Path(ONE).read_bytes()
