"""`specsim run` on table calibrations: graph modes show, and so does a capture list that misses 1 + k."""

import json

import pytest

from sim.answers.run import run_scenario
from sim.inputs.errors import InputError, OutsideCalibrationError

FILE = {
    "schema": "specsim-calibration/1",
    "name": "stairs",
    "kind": "measured",
    "provenance": {"source": "a test", "date": "2026-11-30", "licence": "Apache-2.0"},
    "hardware": {"gpu": "none"},
    "models": {"target": "none"},
    "async_scheduling": False,
}
ROWS = [1, *(edge + side for edge in range(8, 257, 8) for side in (0, 1))]


def costs(sizes, limit):
    stairs = [5.0 + 0.2 * -(-rows // 8) for rows in ROWS]
    columns = {"full": stairs, "piecewise": [ms + 0.5 for ms in stairs], "eager": [3 * ms for ms in stairs]}
    return {
        "form": "table",
        "dense": {mode: {"rows": ROWS, "ms": ms} for mode, ms in columns.items()},
        "draft": {
            "kind": "chain",
            "first": {"rows": [1, 256], "ms": [0.5, 0.8]},
            "narrow": {"batch": [1, 64], "context": [1, 8192], "ms": [[0.4, 0.5], [0.5, 0.8]]},
        },
        "graphs": {"capture_sizes": sizes, "limit": limit},
        "roofline": {
            "weight_bytes": 16e9,
            "flops_per_row": 16e9,
            "bandwidth_gb_per_s": 3350.0,
            "tflop_per_s": 700.0,
        },
    }


def scenario(folder, sizes, limit, **changes):
    (folder / "stairs.json").write_text(json.dumps(FILE | {"costs": costs(sizes, limit)}))
    content = {
        "calibration": "stairs.json",
        "workload": {
            "requests": 30,
            "arrivals": {"kind": "closed", "concurrency": 6},
            "slices": [
                {"name": "x", "prompt_tokens": 20, "output_tokens": 120, "acceptance": {"kind": "iid", "alpha": 0.7}}
            ],
        },
        "speculation": {"method": "eagle", "num_speculative_tokens": 6},
    } | changes
    path = folder / "scenario.json"
    path.write_text(json.dumps(content))
    return path


def test_a_ladder_that_misses_the_batch_shows_as_eager_steps_and_names_the_size(tmp_path):
    sizes = [1, 2, 4, 8, 16, 24, 32, 40]
    missing = run_scenario(scenario(tmp_path, sizes, 40)).document
    share = missing["arms"]["speculative"]["graph_mode_share"]
    assert share["eager"] > 0.5
    assert missing["arms"]["baseline"]["graph_mode_share"]["eager"] < 0.1  # the first prompts, 120 rows at once
    named = [warning for warning in missing["warnings"] if "without a FULL CUDA graph" in warning]
    assert len(named) == 1
    assert "6 requests of 7 tokens are 42 rows, add 42" in named[0]
    whole = run_scenario(scenario(tmp_path, [*sizes, 42], 42)).document
    assert whole["arms"]["speculative"]["graph_mode_share"]["full"] > 0.5
    assert not any("without a FULL CUDA graph" in warning for warning in whole["warnings"])
    tpot = [document["arms"]["speculative"]["mean_tpot_ms"] for document in (missing, whole)]
    assert tpot[0] > 1.8 * tpot[1]


def test_cut_drafts_are_not_blamed_on_the_captured_sizes(tmp_path):
    path = scenario(tmp_path, [1, 2, 4, 8, 16, 32, 42, 64], 64, engine={"max_num_scheduled_tokens": 38})
    warnings = [text for text in run_scenario(path).document["warnings"] if "CUDA graph" in text]
    assert len(warnings) == 1
    assert "verify unequal numbers of drafts" in warnings[0]


def test_sizes_that_count_requests_are_named_in_requests(tmp_path):
    path = scenario(tmp_path, [1, 2, 4], 4)
    stored = json.loads((tmp_path / "stairs.json").read_text())
    stored["costs"]["graphs"]["unit"] = "requests"
    (tmp_path / "stairs.json").write_text(json.dumps(stored))
    named = [text for text in run_scenario(path).document["warnings"] if "add 6 to the capture sizes" in text]
    assert [text.split(":")[0] for text in named] == ["arm baseline", "arm speculative"]


def test_a_calibration_without_a_drafter_cannot_speculate(tmp_path):
    path = scenario(tmp_path, [1, 2, 4, 8], 8)
    stored = json.loads((tmp_path / "stairs.json").read_text())
    del stored["costs"]["draft"]
    (tmp_path / "stairs.json").write_text(json.dumps(stored))
    with pytest.raises(InputError, match="knows no drafter"):
        run_scenario(path)
    assert run_scenario(path, ("speculation=null",)).document["arms"]["baseline"]["completed"] == 30


def test_jobs_and_processes_change_nothing(tmp_path):
    path = scenario(tmp_path, [1, 2, 4, 8, 16, 32, 64], 64, run={"replications": 3})
    assert run_scenario(path).document == run_scenario(path, jobs=2).document


def test_beyond_the_dense_table_without_a_roofline_there_is_no_number(tmp_path):
    path = scenario(tmp_path, [1, 2, 4, 8], 8)
    stored = json.loads((tmp_path / "stairs.json").read_text())
    del stored["costs"]["roofline"]
    (tmp_path / "stairs.json").write_text(json.dumps(stored))
    crowded = ("workload.arrivals.concurrency=60", "workload.requests=120", "run.replications=2")
    for jobs in (1, 2):
        with pytest.raises(InputError) as caught:
            run_scenario(path, crowded, jobs=jobs)
        assert [problem.field for problem in caught.value.problems] == ["costs.roofline"]


def test_beyond_the_tables_it_warns_and_strict_refuses(tmp_path):
    path = scenario(tmp_path, [1, 2, 4, 8], 8)
    crowded = ("workload.arrivals.concurrency=60", "workload.requests=120")
    document = run_scenario(path, crowded).document
    assert document["arms"]["speculative"]["extrapolated_share"] > 0.05
    assert any("beyond the calibrated range" in warning for warning in document["warnings"])
    with pytest.raises(OutsideCalibrationError):
        run_scenario(path, crowded, strict=True)
