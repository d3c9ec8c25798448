import hashlib
import json
from pathlib import Path

import pytest

from sim.cost.compile import compile_costs
from sim.cost.step_costs import StepShape
from sim.inputs.calibration import InlineAffine
from sim.inputs.catalog import calibration_names, calibration_path
from sim.inputs.errors import InputError
from sim.inputs.load_calibration import load_calibration
from sim.inputs.yaml_text import parse_mapping

H100 = "h100-llama-3.1-8b-eagle"


def source(folder):
    return parse_mapping("calibration: x\n", "s.yaml", folder)


def changed(folder, **changes):
    data = json.loads(calibration_path(H100).read_text())
    data.update(changes)
    (folder / "own.json").write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return load_calibration("own.json", source(folder))


def test_a_shipped_calibration(tmp_path):
    calibration = load_calibration(H100, source(tmp_path))
    assert calibration.name == H100
    assert calibration.kind == "published"
    assert calibration.sha256 == hashlib.sha256(calibration_path(H100).read_bytes()).hexdigest()


@pytest.mark.parametrize("name", calibration_names())
def test_every_shipped_calibration_is_named_as_its_file(name, tmp_path):
    assert load_calibration(name, source(tmp_path)).name == name


def test_the_published_fit_is_what_a_decode_round_costs():
    """arXiv:2601.11580, k = 3: verification, drafting and overhead in seconds, B requests with contexts of 500."""
    calibration = load_calibration(H100, source(Path()))
    costs = compile_costs(calibration, 3)
    for batch in (1, 16, 64):
        kv, rows = 500 * batch, 4 * batch
        terms = costs.terms(StepShape(batch, 3 * batch, kv, [], 0, 0), draft_passes=3)
        verify_s = 3.92645679e-08 * kv + 2.10103129e-05 * rows + 5.88590713e-03
        draft_s = 2.37768493e-09 * kv + 8.41429603e-07 * rows + 2.13526175e-03
        assert terms.target == pytest.approx(1e3 * verify_s, rel=1e-8)
        assert terms.draft == pytest.approx(1e3 * draft_s, rel=1e-8)
        assert terms.host == pytest.approx(1.20683946, rel=1e-8)
        assert not terms.extrapolated
    assert costs.terms(StepShape(65, 195, 0, [], 0, 0), draft_passes=3).extrapolated


def test_inline_costs_are_synchronous_and_keep_their_blocks(tmp_path):
    inline = InlineAffine(kind="affine", target_fixed_ms=10, host_ms=1, num_gpu_blocks=5, num_gpu_blocks_baseline=6)
    calibration = load_calibration(inline, source(tmp_path))
    assert (calibration.name, calibration.kind, calibration.async_scheduling) == ("affine", "affine", False)
    assert (calibration.num_gpu_blocks, calibration.num_gpu_blocks_baseline) == (5, 6)
    assert (calibration.costs.target_fixed_ms, calibration.costs.host_ms) == (10, 1)
    assert calibration.sha256 is None


@pytest.mark.parametrize(
    ("kind", "gpu", "stated", "expected"),
    [
        ("measured", "NVIDIA H100", None, True),
        ("published", "NVIDIA H100", None, True),
        ("analytic", "NVIDIA H100", None, True),
        ("imported", "NVIDIA H100", None, False),
        ("measured", "AMD EPYC CPU", None, False),
        ("measured", "NVIDIA H100", False, False),
        ("imported", "AMD EPYC CPU", True, True),
    ],
)
def test_asynchronous_scheduling_is_the_default_on_a_gpu(tmp_path, kind, gpu, stated, expected):
    calibration = changed(tmp_path, kind=kind, hardware={"gpu": gpu}, async_scheduling=stated)
    assert calibration.async_scheduling is expected


def test_an_unknown_name_points_at_the_scenario(tmp_path):
    with pytest.raises(InputError) as caught:
        load_calibration("h100-llama-3.1-8b-eagl", source(tmp_path))
    assert str(caught.value).startswith("s.yaml:1:14: calibration: unknown calibration")
    assert f"did you mean '{H100}'?" in str(caught.value)


def test_a_mistake_in_the_file_points_into_it(tmp_path):
    with pytest.raises(InputError) as caught:
        changed(tmp_path, fitted_range={"max_decode_batch": 0}, costs={"form": "affine"})
    assert {problem.file for problem in caught.value.problems} == {str(tmp_path / "own.json")}
    assert "fitted_range.max_decode_batch: 0 is out of range" in str(caught.value)
