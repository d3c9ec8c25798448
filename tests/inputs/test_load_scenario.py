import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.inputs.catalog import scenario_names, scenario_path
from sim.inputs.errors import InputError
from sim.inputs.load import MOST_PROBLEMS, load_scenario
from sim.inputs.resolved import resolved_scenario

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = {
    "calibration": {"kind": "affine", "target_fixed_ms": 10},
    "workload": {
        "requests": 20,
        "arrivals": {"kind": "closed", "concurrency": 4},
        "slices": [{"name": "a", "prompt_tokens": 5, "output_tokens": 9, "acceptance": {"kind": "iid", "alpha": 0.5}}],
    },
    "speculation": {"method": "eagle", "num_speculative_tokens": 3},
}


def write(folder, data, name="s.yaml"):
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


def test_what_is_loaded(tmp_path):
    path = write(tmp_path, SCENARIO)
    loaded = load_scenario(path, ["run.seed=9", "engine.enable_chunked_prefill=no"])
    assert loaded.file == str(path)
    assert loaded.base_dir == tmp_path
    assert loaded.scenario.run.seed == 9
    assert loaded.scenario.engine.enable_chunked_prefill is False
    assert loaded.data["run"] == {"seed": 9}
    assert loaded.scenario.speculation.num_speculative_tokens == 3
    assert loaded.calibrations["calibration"].costs.target_fixed_ms == 10


def test_a_later_problem_is_placed(tmp_path):
    path = write(tmp_path, "# a comment\n" + json.dumps(SCENARIO))
    loaded = load_scenario(path, ["workload.slices.0.prompt_tokens=7"])
    problem = loaded.problem("workload.slices.0.prompt_tokens", "a", "b", "c")
    assert (problem.file, problem.line, problem.column) == ("--set workload.slices.0.prompt_tokens=7", 1, 33)
    nearest = loaded.problem("workload.slices.0.prompt_tokens.path", "a", "b", "c")
    assert (nearest.line, nearest.column, nearest.field) == (1, 33, "workload.slices.0.prompt_tokens.path")
    assert loaded.problem("engine.block_size", "a", "b", "c").file == str(path)
    assert loaded.problem("workload.requests", "a", "b", "c").line == 2


def test_numbers_may_have_exponents_and_seeds_may_be_large(tmp_path):
    loaded = load_scenario(write(tmp_path, SCENARIO), ["workload.requests=1e3", f"run.seed={2**63 - 1}"])
    assert loaded.scenario.workload.requests == 1000
    assert loaded.scenario.run.seed == 2**63 - 1


@pytest.mark.parametrize("word", ["true", "True", "yes", "on", "Yes"])
def test_a_flag_may_be_spelled_as_in_yaml(tmp_path, word):
    loaded = load_scenario(write(tmp_path, SCENARIO), [f"engine.async_scheduling={word}"])
    assert loaded.scenario.engine.async_scheduling is True


def test_a_name_may_be_a_word_that_yaml_calls_a_boolean(tmp_path):
    loaded = load_scenario(write(tmp_path, SCENARIO), ["workload.slices.0.name=no"])
    assert loaded.scenario.workload.slices[0].name == "no"


def test_a_result_is_run_again(tmp_path):
    first = load_scenario(write(tmp_path, SCENARIO), ["run.seed=9"])
    result = {"schema": "specsim-result/1", "seed": 9, "scenario": resolved_scenario(first), "arms": {"baseline": {}}}
    again = load_scenario(write(tmp_path, result, "result.json"))
    assert again.scenario == first.scenario
    with pytest.raises(InputError) as caught:
        load_scenario(tmp_path / "result.json", ["run.seed=x"])
    assert "run.seed=x:1:10: run.seed:" in str(caught.value)


def test_a_mistake_in_a_result_is_placed_in_it(tmp_path):
    data = {**SCENARIO, "run": {"seed": -1}}
    text = json.dumps({"schema": "specsim-result/1", "scenario": data}, indent=1)
    path = write(tmp_path, text, "result.json")
    line = next(place for place, row in enumerate(text.splitlines(), start=1) if '"seed"' in row)
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (line, "run.seed")


def test_a_resolved_scenario_runs_from_any_folder(tmp_path):
    (tmp_path / "l.txt").write_text("5\n")
    calibration = (ROOT / "calibrations" / "h100-llama-3.1-8b-eagle.json").read_text()
    write(tmp_path, calibration, "own.json")
    lengths = {"output_tokens": {"kind": "empirical", "path": "l.txt"}}
    data = json.loads(json.dumps(SCENARIO))
    data["workload"]["slices"][0] |= lengths
    data |= {"calibration": "own.json", "arms": {"x": {"calibration": "h100-llama-3.1-8b-eagle"}}}
    resolved = resolved_scenario(load_scenario(write(tmp_path, data)))
    assert resolved["workload"]["slices"][0]["output_tokens"]["path"] == str(tmp_path / "l.txt")
    assert resolved["calibration"] == str(tmp_path / "own.json")
    assert resolved["arms"] == data["arms"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert load_scenario(write(elsewhere, resolved)).calibrations["calibration"].name == "h100-llama-3.1-8b-eagle"


def test_no_more_than_a_hundred_problems_are_told(tmp_path):
    text = json.dumps(SCENARIO)[:-1] + "".join(f',\n"k{i}": 1' for i in range(500)) + "}"
    with pytest.raises(InputError) as caught:
        load_scenario(write(tmp_path, text))
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert caught.value.problems[-1].what == "more problems follow"


@pytest.mark.skipif(scenario_path("quickstart") is None, reason="no quickstart among the scenarios yet")
def test_without_a_path_the_quickstart_is_loaded():
    assert load_scenario(None).file == str(scenario_path("quickstart"))


@pytest.mark.parametrize("name", scenario_names())
def test_every_shipped_scenario_is_valid(name):
    assert load_scenario(scenario_path(name)).scenario.workload.slices


def test_the_exact_cases_are_valid(tmp_path):
    cases = ROOT.parent / "shared" / "cases" / "oracles.json"
    if not cases.is_file():
        pytest.skip("../shared/cases/oracles.json is not there")
    for case in json.loads(cases.read_text()):
        assert load_scenario(write(tmp_path, case["scenario"])).scenario.speculation


odd = st.sampled_from([None, True, -1, 0, 1.5, 1e400, "x", "5%", [], [1], {}, {"kind": "iid"}, {"kind": 3}, "\n\x7f"])
PLACES = """
    calibration calibration.kind workload workload.requests workload.arrivals workload.arrivals.kind workload.slices
    workload.slices.0 workload.slices.0.share workload.slices.0.acceptance workload.slices.0.prompt_tokens
    workload.slices.0.name speculation speculation.num_speculative_tokens engine engine.style quality arms arms.a
    arms.a.acceptance arms.baseline run slo slo.percentile nothing
"""


def problems_of(path, sets):
    try:
        load_scenario(path, sets)
    except InputError as error:
        return error.problems
    return []


@given(st.dictionaries(st.sampled_from(PLACES.split()), odd, min_size=1, max_size=4))
@settings(deadline=None, max_examples=200)
def test_odd_values_anywhere_are_accepted_or_told_in_one_line(tmp_path_factory, changes):
    sets = [f"{place}={json.dumps(value)}" for place, value in changes.items()]
    path = tmp_path_factory.mktemp("odd") / "s.yaml"
    path.write_text(json.dumps(SCENARIO))
    assert all(len(str(problem).splitlines()) == 1 for problem in problems_of(path, sets))
