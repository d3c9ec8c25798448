"""Mistakes on the command line of `specsim profile`: one line each, exit 2, nothing on stdout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.errors import DeviceLostError
from sim.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def config(**changes):
    dims = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
    }
    return {key: value for key, value in (dims | changes).items() if value is not None}


@pytest.fixture
def written(tmp_path):
    def write(**changes):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config(**changes)))
        return str(path)

    return write


def refused(capsys, *arguments):
    code = main(["profile", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    return err


@pytest.mark.parametrize("field", list(config()))
def test_a_config_that_lacks_a_field_is_told(capsys, written, field):
    if field == "num_key_value_heads":
        assert (
            main(["profile", "plan", "--device", "cpu", "--preset", "quick", "--target", written(**{field: None})]) == 0
        )
        return
    err = refused(capsys, "plan", "--device", "cpu", "--preset", "quick", "--target", written(**{field: None}))
    assert "config.json" in err
    assert field in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": "64"}, "hidden_size"),
        ({"num_key_value_heads": 3}, "do not divide"),
        ({"num_experts": 4}, "num_experts_per_tok"),
        ({"kv_lora_rank": 512}, "latent attention"),
    ],
)
def test_an_impossible_config_is_told(capsys, written, changes, says):
    assert says in refused(capsys, "plan", "--device", "cpu", "--preset", "quick", "--target", written(**changes))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "--device", "cpu", "--preset", "quick"], "--target: is not given"),
        (["plan", "--device", "cpu", "--preset", "huge"], "unknown preset 'huge'"),
        (["plan", "--device", "cpu", "--target", "llama"], "'llama' is unknown"),
        (["plan", "--device", "cpu", "--target", "missing.json"], "missing.json"),
        (["plan", "--device", "cpu", "--target", "tiny-target", "--draft", "llama-3.2-1b"], "share a vocabulary"),
        (["plan", "--device", "cpu", "--dtype", "fp8"], "fp8 on a CPU"),
        (["plan", "--device", "cpu", "--dtype", "int4"], "unknown dtype 'int4'"),
        (["plan", "--device", "cpu", "--depths", "8,4"], "two rising depths"),
        (["plan", "--device", "cpu", "--depths", "four"], "is not like 4,8"),
        (["run", "--device", "cpu", "--backend", "varlen"], "none works here"),
        (["fit", "nowhere"], "measure first"),
        (["check", "nowhere"], "measure first"),
    ],
)
def test_a_mistake_is_told(capsys, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, *arguments)


def test_no_cuda_is_told_before_anything_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    folder = tmp_path / "out"
    assert "torch sees no CUDA GPU" in refused(capsys, "run", "--device", "cuda", "--out", str(folder))
    assert not folder.exists()


def test_too_little_memory_is_told_before_anything_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("profiler.torch_device.free_bytes", lambda device: 2.0**26)
    folder = tmp_path / "out"
    assert "GiB are needed" in refused(capsys, "run", "--device", "cpu", "--out", str(folder))
    assert not folder.exists()


def test_a_lost_device_is_told(capsys, tmp_path, monkeypatch):
    def lost(self, point, settings):
        raise DeviceLostError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr("profiler.synthetic.SyntheticDevice.measure", lost)
    err = refused(capsys, "run", "--device", "synthetic", "--out", str(tmp_path / "out"))
    assert "illegal memory access" in err
    assert "run the same command again" in err


def test_no_torch_is_told(tmp_path):
    code = "import sys; sys.modules['torch'] = None; from sim.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "profile", "run", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "torch: is not installed" in done.stderr
    assert "--device synthetic" in done.stderr


def test_a_calibration_of_another_device_is_not_checked(capsys, tmp_path):
    folder = tmp_path / "out"
    assert main(["profile", "run", "--device", "synthetic", "--out", str(folder)]) == 0
    assert main(["profile", "fit", str(folder)]) == 0
    capsys.readouterr()
    path = folder / "calibration.json"
    path.write_text(path.read_text().replace('"target":"llama-3.1-8b"', '"target":"other"'))
    assert "models.target: other, the points are of llama-3.1-8b" in refused(capsys, "check", str(folder))
