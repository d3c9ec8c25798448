import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.inputs.calibration_checks import calibration_findings
from sim.inputs.catalog import calibration_names, calibration_path
from sim.inputs.errors import InputError
from sim.inputs.load import load_scenario
from sim.inputs.load_calibration import open_calibration
from sim.inputs.yaml_text import parse_mapping

ROWS = [1, 16, 64, 128, 136, 256]
DENSE_MS = [6.0, 6.1, 6.4, 6.8, 9.0, 10.0]
TABLE = {
    "schema": "specsim-calibration/1",
    "name": "own",
    "kind": "measured",
    "provenance": {"source": "s", "date": "d", "licence": "l"},
    "hardware": {"gpu": "NVIDIA H100 80GB"},
    "models": {"target": "8B", "draft": "1B"},
    "costs": {
        "form": "table",
        "dense": {
            "full": {"rows": ROWS, "ms": DENSE_MS},
            "eager": {"rows": list(ROWS), "ms": [ms + 9 for ms in DENSE_MS]},
        },
        "head": {"rows": [1, 256], "ms": [0.2, 0.4]},
        "decode_attention": {
            "batch": [1, 64],
            "query": [1, 4],
            "context": [16, 1024, 4096],
            "ms": [[[0.1, 0.1, 0.2], [0.1, 0.2, 0.3]], [[0.2, 3.0, 12.0], [0.2, 3.2, 12.4]]],
        },
        "prefill_attention": {"chunk": [64, 2048], "start": [0, 8192], "ms": [[0.1, 0.2], [0.4, 2.0]]},
        "sampling": {"batch": [1, 64], "query": [1, 4], "ms": [[0.1, 0.1], [0.2, 0.3]]},
        "kv_update": {"rows": [1, 256], "ms": [0.01, 0.02]},
        "draft": {
            "kind": "chain",
            "first": {"rows": [1, 256], "ms": [1.0, 1.2]},
            "narrow": {"batch": [1, 64], "context": [16, 4096], "ms": [[0.9, 1.0], [1.0, 1.4]]},
        },
        "host": {"rows": [1, 64], "ms": [0.5, 1.0]},
        "graphs": {"capture_sizes": [1, 8, 64, 128], "limit": 128},
        "roofline": {
            "weight_bytes": 16e9,
            "flops_per_row": 16e9,
            "bandwidth_gb_per_s": 3350,
            "tflop_per_s": 989,
        },
        "whole_steps": [{"batch": 16, "query": 4, "context": 1024, "ms": 9.5}],
    },
    "memory": {"gpu_memory_bytes": 80e9, "target_weight_bytes": 16e9, "kv_bytes_per_token": 131072},
}
ROUNDS = {"form": "rounds", "batch": [1, 16], "drafts": [0, 2, 4], "ms": [[6.9, 9, None], [7.3, 9.6, 11]]}


def part(data, path):
    for key in path.split("."):
        data = data[int(key) if isinstance(data, list) else key]
    return data


def changed(path, value, costs=None):
    """The table with one value replaced (None: removed)."""
    data = copy.deepcopy(TABLE)
    if costs is not None:
        data["costs"] = copy.deepcopy(costs)
    above, _, key = path.rpartition(".")
    target = part(data, above) if above else data
    if value is None and isinstance(target, dict):
        del target[key]
    else:
        target[int(key) if isinstance(target, list) else key] = value
    return data


def told(data):
    return {(finding.field, finding.what, finding.rule) for finding in calibration_findings(data)}


def test_a_whole_table_is_right():
    assert told(TABLE) == set()
    assert told({**TABLE, "costs": ROUNDS}) == set()


@pytest.mark.parametrize("name", calibration_names())
def test_shipped_calibrations_are_right(name):
    assert told(json.loads(calibration_path(name).read_text("utf-8"))) == set()


WRONG = [
    ("costs.dense.full.rows.2", 16, "costs.dense.full.rows.2", "16 after 16"),
    ("costs.decode_attention.context.1", 8, "costs.decode_attention.context.1", "8 after 16"),
    ("costs.graphs.capture_sizes", [8, 4], "costs.graphs.capture_sizes.1", "4 after 8"),
    ("costs.graphs.limit", 64, "costs.graphs.capture_sizes", "128 with a limit of 64"),
    ("costs.dense.full.ms", DENSE_MS[1:], "costs.dense.full.ms", "5 entries for 6 points of rows"),
    ("costs.decode_attention.batch", [1, 8, 64], "costs.decode_attention.ms", "2 entries for 3 points of batch"),
    ("costs.decode_attention.query", [1, 2, 4], "costs.decode_attention.ms.1", "2 entries for 3 points of query"),
    ("costs.decode_attention.context", [16], "costs.decode_attention.ms.0.0", "3 entries for 1 points of context"),
    ("costs.prefill_attention.ms.1", [1], "costs.prefill_attention.ms.1", "1 entries for 2 points of start"),
    ("costs.sampling.ms.0", [1, 2, 3], "costs.sampling.ms.0", "3 entries for 2 points of query"),
    ("costs.draft.narrow.ms.0", [1], "costs.draft.narrow.ms.0", "1 entries for 2 points of context"),
    ("costs.draft.first.ms", [1], "costs.draft.first.ms", "1 entries for 2 points of rows"),
    ("costs.dense", {}, "costs.dense", "holds no column"),
    ("costs.dense.eager", None, "costs.dense", "has no eager column"),
    ("costs.dense.full", None, "costs.dense", "has no captured column"),
    ("costs.head.ms", [0, 0], "costs.head.ms", "is all zero"),
    ("costs.dense.full.ms", [0] * 6, "costs.dense.full.ms", "is all zero"),
    ("costs.whole_steps.0.batch", 100, "costs.whole_steps.0.batch", "400 rows"),
    ("costs.whole_steps.0.ms", 0.0095, "costs.whole_steps.0.ms", "0.0095 ms"),
    ("costs.dense.full.ms.5", 0.01, "costs.dense.full.ms.5", "0.01 ms for 256 rows"),
    ("memory.target_weight_bytes", 81e9, "memory.target_weight_bytes", "weights of 8.1e+10 bytes"),
]


@pytest.mark.parametrize(("path", "value", "field", "what"), WRONG, ids=[f"{row[0]}-{row[3]}" for row in WRONG])
def test_what_is_wrong_in_a_table_is_named(path, value, field, what):
    assert any(found[0] == field and found[1].startswith(what) for found in told(changed(path, value)))


def times_a_thousand(path, factor=1000.0):
    """The table with every time of one term in another unit."""

    def scaled(times):
        return [scaled(one) for one in times] if isinstance(times, list) else times * factor

    return changed(f"costs.{path}.ms", scaled(part(TABLE, f"costs.{path}.ms")))


@pytest.mark.parametrize(
    ("term", "field"),
    [
        ("head", "costs.head.ms.0"),
        ("sampling", "costs.sampling.ms.0.0"),
        ("draft.first", "costs.draft.first.ms.0"),
        ("draft.narrow", "costs.draft.narrow.ms.0.0"),
        ("decode_attention", "costs.decode_attention.ms.1.0.2"),
        ("host", "costs.host.ms.1"),
    ],
)
def test_each_term_in_microseconds_is_told(term, field):
    data = times_a_thousand(term)
    if term == "sampling":
        data["costs"]["sampling"]["ms"] = [[200.0, 200.0], [300.0, 400.0]]
    assert [found[0] for found in told(data)] == [field]
    assert all("off by 1000" in finding.remedy for finding in calibration_findings(data))


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("costs.head.ms.0", 30 * 6.0),
        ("costs.kv_update.ms.1", 30 * 10.0),
        ("costs.sampling.ms.0.1", 30 * 6.0),  # 4 rows are nearest to 1
        ("costs.draft.narrow.ms.1.0", 30 * 6.4),
        ("costs.host.ms.0", 100 * 6.0),
        ("costs.host.ms.1", 100 * 6.4),
    ],
)
def test_a_term_is_held_against_the_dense_pass_of_as_many_rows(path, most):
    assert told(changed(path, 0.99 * most)) == set()
    assert [found[0] for found in told(changed(path, 1.01 * most))] == [path]
    bare = changed(path, 1.01 * most)
    del bare["memory"], bare["costs"]["roofline"]
    assert [found[0] for found in told(bare)] == [path]


def test_a_parallel_draft_is_held_against_the_dense_pass():
    draft = {"kind": "parallel", "block": 4, "one_pass": {"rows": [4, 256], "ms": [1.0, 301.0]}}
    assert [found[0] for found in told(changed("costs.draft", draft))] == ["costs.draft.one_pass.ms.1"]


def test_a_narrow_pass_may_read_long_contexts():
    """A draft model of its own reads the caches of a large batch for longer than a small target pass takes."""
    assert told(changed("costs.draft.narrow.ms.1.1", 900.0)) == set()


@pytest.mark.parametrize("roofline", [True, False])
def test_attention_is_held_against_the_memory(roofline):
    """64 requests of 4096 tokens at 131,072 bytes: 34.4 GB."""
    least = 34.36 / (1.5 * 3.35 if roofline else 12)
    most = 5 + 300 * 34.36 / (3.35 if roofline else 8)
    path = "costs.decode_attention.ms.1.0.2"
    for ms, wrong in ((0.97 * least, True), (1.03 * least, False), (0.97 * most, False), (1.03 * most, True)):
        data = changed(path, ms)
        if not roofline:
            del data["costs"]["roofline"]
        assert [found[0] for found in told(data)] == [path] * wrong
    data = changed(path, 1e-3)
    del data["memory"]  # nothing to hold it against
    assert told(data) == set()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"target_per_token_us": 1.1e4}, "target_per_token_us"),
        ({"target_per_kv_token_ns": 1.1e6}, "target_per_kv_token_ns"),
        ({"draft_fixed_ms": 181.0}, "draft_fixed_ms"),
        ({"host_ms": 1001.0}, "host_ms"),
        ({"target_per_token_us": 9e3, "target_per_kv_token_ns": 9e5, "draft_fixed_ms": 179.0, "host_ms": 999.0}, None),
        ({"target_fixed_ms": 0.0, "target_per_token_us": 5e3, "draft_fixed_ms": 5.0}, None),
    ],
)
def test_affine_costs_of_a_file_have_likely_units(tmp_path, changes, field):
    costs = {"target_fixed_ms": 6.0} | changes
    data = {key: value for key, value in TABLE.items() if key != "memory"}
    found = told({**data, "costs": {"form": "affine"} | costs})
    assert [one[0] for one in found] == ([f"costs.{field}"] if field else [])
    path = tmp_path / "s.yaml"  # a scenario's own are for theory: any number is right there
    path.write_text(SCENARIO.replace("own.json", json.dumps({"kind": "affine"} | costs)))
    assert load_scenario(path).calibrations["calibration"].kind == "affine"


@pytest.mark.parametrize(
    ("path", "wrong", "right"),
    [
        ("memory.kv_bytes_per_token", 99, 131072),
        ("memory.kv_bytes_per_token", 1.1e8, 131072),
        ("memory.target_weight_bytes", 9e6, 16e9),
        ("costs.roofline.weight_bytes", 9e6, 16e9),
        ("costs.roofline.weight_bytes", 1.1e14, 16e9),
    ],
)
def test_sizes_that_no_model_has_are_told(path, wrong, right):
    assert any(found[:2] == (path, f"{wrong:g} bytes") for found in told(changed(path, wrong)))
    assert told(changed(path, right)) == set()


WRONG_ROUNDS = [
    ("costs.batch", [16, 1], "costs.batch.1", "1 after 16"),
    ("costs.drafts", [0, 2, 2], "costs.drafts.2", "2 after 2"),
    ("costs.drafts", [1, 2, 3], "costs.drafts.0", "starts at 1"),
    ("costs.batch", [1, 2, 16], "costs.ms", "2 entries for 3 points of batch"),
    ("costs.ms.1", [1, 2], "costs.ms.1", "2 entries for 3 points of drafts"),
    ("costs.ms.0", [6.9, None, None], "costs.ms.0", "has fewer than two cells"),
    ("costs.ms.0", [None, 9, 10], "costs.ms.0.0", "is null"),
    ("costs.ms", [[0.007, 0.009, None], [0.007, 0.01, 0.011]], "costs.ms.1.2", "0.011 ms for a target pass"),
]


@pytest.mark.parametrize(("path", "value", "field", "what"), WRONG_ROUNDS, ids=[f"{r[0]}-{r[3]}" for r in WRONG_ROUNDS])
def test_what_is_wrong_in_rounds_is_named(path, value, field, what):
    assert any(found[0] == field and found[1].startswith(what) for found in told(changed(path, value, ROUNDS)))


@settings(deadline=None, max_examples=30)
@given(
    factor=st.sampled_from([1e-3, 1e3, 1e-6, 1e5]),
    roofline=st.booleans(),
    memory=st.booleans(),
    form=st.sampled_from(["table", "rounds", "affine"]),
)
def test_units_off_by_a_thousand_are_told_where_the_weights_are_known(factor, roofline, memory, form):
    data = copy.deepcopy(TABLE)
    if form == "table":
        del data["costs"]["whole_steps"]
        for column in data["costs"]["dense"].values():
            column["ms"] = [ms * factor for ms in column["ms"]]
        if not roofline:
            del data["costs"]["roofline"]
    elif form == "rounds":
        cells = [[ms and ms * factor for ms in row] for row in ROUNDS["ms"]]
        data["costs"] = {**ROUNDS, "ms": cells}
    else:
        fixed, row = 5.9 * factor, 21.0 * factor
        data["costs"] = {"form": "affine", "target_fixed_ms": fixed, "target_per_token_us": row}
    knows_weights = memory or (form == "table" and roofline)
    if not memory:
        del data["memory"]
    found = [finding for finding in calibration_findings(data) if "off by 1000" in finding.remedy]
    assert found or not knows_weights


def test_without_weights_only_the_impossible_is_refused():
    for ms, wrong in ((5e-4, True), (2e-3, False), (9e4, False), (2e5, True)):
        costs = {"form": "table", "dense": {"eager": {"rows": [1], "ms": [ms]}}}
        data = {key: value for key, value in TABLE.items() if key != "memory"} | {"costs": costs}
        assert bool(told(data)) is wrong


def test_experts_may_read_less_than_all_weights_at_few_rows():
    """A mixture of experts: 60 GB of weights, a twentieth of them for one row, all of them for many."""
    roofline = {"weight_bytes": 60e9, "flops_per_row": 6e9, "bandwidth_gb_per_s": 3350, "tflop_per_s": 989}
    curve = {"rows": [1, 8, 256], "ms": [2.0, 8.0, 20.0]}
    data = {**TABLE, "costs": {"form": "table", "dense": {"eager": curve}, "roofline": roofline}}
    assert told(data) == set()


def test_every_mistake_is_told_at_once_with_its_place(tmp_path):
    data = changed("costs.dense.full.rows.2", 16)
    data["costs"]["head"]["ms"] = [0.2]
    data["memory"]["target_weight_bytes"] = 81e9
    data["kind"] = "guessed"  # found by the schema: what is right by itself is still checked across keys
    (tmp_path / "own.json").write_text(json.dumps(data, indent=1))
    with pytest.raises(InputError) as caught:
        open_calibration("own.json", parse_mapping("calibration: own.json", "s.yaml", tmp_path))
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["kind", "costs.dense.full.rows.2", "costs.head.ms", "memory.target_weight_bytes"]
    lines = (tmp_path / "own.json").read_text().splitlines()
    assert all(problem.file == str(tmp_path / "own.json") for problem in caught.value.problems)
    assert lines[caught.value.problems[1].line - 1].strip() == "16,"


SCENARIO = """\
calibration: own.json
workload:
  requests: 2
  arrivals: {kind: at_once}
  slices: [{name: a, prompt_tokens: 9, output_tokens: 9, acceptance: {kind: iid, alpha: 0.5}, success_rate: 0.5}]
speculation: {method: eagle, num_speculative_tokens: 3}
"""
LOSSY = "quality: {contract: lossy}\n"


@pytest.mark.parametrize("target", ["8B", "8b", "70B"])
def test_a_lossless_arm_keeps_the_model(tmp_path: Path, target):
    (tmp_path / "own.json").write_text(json.dumps(TABLE))
    other = {**TABLE, "name": "other", "models": {"target": target}}
    (tmp_path / "other.json").write_text(json.dumps(other))
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO + "arms: {x: {calibration: other.json}}\n")
    if target != "70B":
        assert load_scenario(path).calibrations["arms.x.calibration"].name == "other"
        return
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (7, "arms.x.calibration")
    assert "does not give the same outputs" in problem.rule
    rates = "{success_rate: 0.5}"
    arms = f"arms: {{speculative: {rates}, x: {{calibration: other.json, success_rate: 0.5}}}}\n"
    path.write_text(SCENARIO + LOSSY + arms)
    assert load_scenario(path).calibrations["arms.x.calibration"].models.target == "70B"


@pytest.mark.parametrize("common", ["{kind: affine, target_fixed_ms: 9}", "own.json"])
def test_arms_are_held_against_each_other_where_the_scenario_names_no_target(tmp_path: Path, common):
    for name, target in (("own", "8B"), ("small", "8b"), ("large", "70B")):
        (tmp_path / f"{name}.json").write_text(json.dumps({**TABLE, "name": name, "models": {"target": target}}))
    path = tmp_path / "s.yaml"
    text = SCENARIO.replace("calibration: own.json", f"calibration: {common}")
    path.write_text(text + "arms: {x: {calibration: small.json}, y: {calibration: large.json}}\n")
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    (problem,) = caught.value.problems
    assert problem.field == "arms.y.calibration"
    assert ("that of x is of 8b" if "affine" in common else "the scenario's is of 8B") in problem.what
    path.write_text(text + "arms: {x: {calibration: small.json}, y: {calibration: own.json}}\n")
    assert set(load_scenario(path).calibrations) == {"calibration", "arms.x.calibration", "arms.y.calibration"}
