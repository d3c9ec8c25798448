import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_file import table_data, write_table

from sim.answers.explain import explain
from sim.answers.next_stair import next_stair
from sim.cli.main import main
from sim.cost.compile import compile_costs
from sim.cost.step_costs import GraphMode, StepShape
from sim.inputs.calibration import Calibration, TableCosts
from sim.inputs.errors import InputError
from sim.inputs.load import load_scenario

SCENARIO = """\
calibration: own.json
workload:
  requests: 300
  arrivals: {kind: closed, concurrency: 16}
  slices: [{name: a, prompt_tokens: 500, output_tokens: 100, acceptance: {kind: iid, alpha: 0.5}}]
speculation: {method: eagle, num_speculative_tokens: 3}
engine: {num_gpu_blocks: 20000, num_gpu_blocks_baseline: 20000}
"""


@pytest.fixture
def scenario(tmp_path):
    write_table(tmp_path / "own.json")
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    return path


def calibration_of(**costs):
    data = table_data(**costs)
    return Calibration(name="own", kind="measured", costs=TableCosts.model_validate(data["costs"]))


def told(capsys, *line):
    assert main(["explain", *map(str, line), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


@settings(deadline=None, max_examples=25)
@given(
    batch=st.integers(1, 300),
    context=st.integers(0, 20_000),
    drafts=st.integers(0, 8),
    shipped=st.sampled_from(["h100-llama-3.1-8b-eagle", "h100-llama-3.1-8b-eagle-rounds"]),
)
def test_a_step_is_what_the_engine_pays(batch, context, drafts, shipped):
    sets = [f"calibration={shipped}", "workload.requests=50"]
    document = explain(None, sets, batch=batch, context_tokens=context, drafts=drafts)
    calibration = load_scenario(None, sets).calibrations["calibration"]
    for step, k in ((document["step"], drafts), (document["without_speculation"], 0)):
        shape = StepShape(batch, batch * k, batch * context, [], 0, 0)
        terms = compile_costs(calibration, k).terms(shape, k)
        assert sum(step["parts"].values()) == pytest.approx(sum(terms[:2]) + sum(terms[3:6]))
        assert step["extrapolated"] == terms.extrapolated


def test_the_parts_of_a_table(scenario):
    document = explain(scenario, batch=16, context_tokens=1000)
    calibration = load_scenario(scenario).calibrations["calibration"]
    terms = compile_costs(calibration, 3).terms(StepShape(16, 48, 16_000, [], 0, 0), 3)
    parts = document["step"]["parts"]
    assert parts["dense"] + parts["head"] + parts["attention"] == pytest.approx(terms.target)
    assert parts["dense"] == 6.1  # 64 rows, a captured size
    assert parts["draft_first_pass"] + parts["draft_narrow_passes"] == pytest.approx(terms.draft)
    assert {name: parts[name] for name in ("host", "sampling", "kv_update")} == pytest.approx(
        {"host": terms.host, "sampling": terms.sampling, "kv_update": terms.kv_update}
    )
    assert document["step"]["step_ms"] == pytest.approx(sum(parts.values()))
    assert (document["step"]["graph"], document["step"]["padded_rows"]) == ("full", 64)
    plain = document["without_speculation"]
    assert (plain["rows"], plain["padded_rows"]) == (16, 64)
    assert not {"draft_first_pass", "draft_narrow_passes"} & set(plain["parts"])
    assert document["ridge_rows"] == pytest.approx(989e12 / 3350e9)


def test_scheduled_asynchronously_the_device_hides_the_host(scenario):
    series = explain(scenario, batch=16)
    hidden = explain(scenario, ["engine.async_scheduling=true"], batch=16)
    assert hidden["step"]["parts"] == series["step"]["parts"]
    host = series["step"]["parts"]["host"]
    assert hidden["step"]["step_ms"] == pytest.approx(series["step"]["step_ms"] - host)


def test_tokens_per_round_follow_from_the_acceptance(scenario):
    """Rounds of 1 + 0.5 + 0.25 + 0.125 tokens; 99 tokens a request, so cuts at the end take up to 1 %."""
    document = explain(scenario)
    committed = document["step"]["committed_tokens_per_round"]
    assert 1.875 * 0.98 < committed < 1.875 * 1.005
    assert document["step"]["ms_per_committed_token"] == pytest.approx(document["step"]["step_ms"] / committed)
    assert document["without_speculation"]["committed_tokens_per_round"] == 1
    certain = explain(scenario, ["workload.slices.0.acceptance.alpha=1", "workload.slices.0.output_tokens=401"])
    assert certain["step"]["committed_tokens_per_round"] == 4


@pytest.mark.parametrize(
    ("sets", "batch", "source"),
    [
        ([], 16, "concurrency of the arrivals"),
        (["engine.replicas=4"], 4, "concurrency of the arrivals"),
        (["engine.max_num_seqs=5"], 5, "max_num_seqs"),
        (["engine.num_gpu_blocks=100", "engine.num_gpu_blocks_baseline=100"], 2, "KV blocks"),
        (["workload.arrivals={kind: at_once}"], 256, "max_num_seqs"),
        (["workload.arrivals={kind: at_once}", "workload.requests=7"], 7, "all requests at once"),
    ],
)
def test_the_batch_comes_from_the_scenario(scenario, sets, batch, source):
    assert explain(scenario, sets)["batch"] == {"value": batch, "source": source}


def test_a_batch_that_keeps_up_with_the_arrivals(scenario):
    document = explain(scenario, ["workload.arrivals={kind: poisson, rate: 10}"])
    batch, step = document["batch"]["value"], document["step"]
    assert "10 requests/s" in document["batch"]["source"]
    needed_per_s = 10 * 99 / step["committed_tokens_per_round"]
    assert 1000 * batch / step["step_ms"] >= needed_per_s
    one_less = explain(scenario, batch=batch - 1)["step"]["step_ms"]
    assert 1000 * (batch - 1) / one_less < needed_per_s


def test_the_context_is_the_mean_of_decoding(scenario):
    assert explain(scenario)["context_tokens"]["value"] == 550
    assert explain(scenario, context_tokens=7)["context_tokens"] == {"value": 7, "source": "given"}


@settings(deadline=None, max_examples=40)
@given(batch=st.integers(1, 60), drafts=st.integers(0, 5), captured=st.booleans())
def test_up_to_the_next_stair_it_costs_about_the_same_and_above_more(batch, drafts, captured):
    calibration = calibration_of() if captured else calibration_of(graphs=None, whole_steps=[])
    stair = next_stair(calibration, batch, drafts)
    rows = batch * (1 + drafts)

    def dense(n, k):
        costs = compile_costs(calibration, k)
        mode, padded = costs.graphs.launch(n, n * (1 + k), 0)
        return costs.dense[mode].at(padded)

    mode, padded = compile_costs(calibration, drafts).graphs.launch(batch, rows, 0)
    eager = mode is GraphMode.EAGER
    assert eager or captured
    if stair is None:
        assert eager
        assert padded > 128
        return
    assert stair.last_rows >= rows
    assert stair.after_ms > stair.before_ms
    assert stair.more_requests >= 0
    assert stair.more_drafts >= 0
    if not eager:
        here, most = dense(batch, drafts), 1.03 * stair.before_ms
        assert here <= dense(batch + stair.more_requests, drafts) * (1 + 1e-9) <= most
        assert dense(batch + stair.more_requests + 1, drafts) > 1.02 * stair.before_ms
        assert dense(batch, drafts + stair.more_drafts) <= most
    else:
        assert stair.last_rows == 128
        assert (stair.before_ms, stair.after_ms) == (15.2, 18.0)


def test_the_cliff_above_the_captured_sizes():
    stair = next_stair(calibration_of(), 60, 3)
    assert (stair.last_rows, stair.graph_after, stair.more_requests) == (256, "eager", 4)
    assert stair.after_ms > stair.before_ms + 8


def test_many_small_rises_are_no_free_rows():
    """1.5 % from each size to the next, below what counts as a stair; the 25th is 43 % above the first."""
    rows = [8 * i for i in range(1, 26)]
    curve = {"rows": rows, "ms": [6.0 * 1.015**i for i in range(25)]}
    eager = {"rows": rows, "ms": [20.0 * 1.015**i for i in range(25)]}
    smooth = calibration_of(dense={"full": curve, "eager": eager}, graphs={"capture_sizes": rows}, whole_steps=[])
    stair = next_stair(smooth, 16, 0)
    assert (stair.last_rows, stair.more_requests, stair.graph_after) == (24, 8, "full")
    assert (stair.before_ms, stair.after_ms) == pytest.approx((6.0 * 1.015, 6.0 * 1.015**3))
    assert stair.more_drafts == 0  # 32 rows


def test_an_eager_step_names_the_size_that_is_missing(scenario):
    warnings = explain(scenario, batch=80)["warnings"]
    assert any("no captured size holds 320 rows at 4 a request" in warning for warning in warnings)
    assert not any("captured" in warning for warning in explain(scenario, batch=16)["warnings"])


def test_drafting_is_never_free(scenario):
    write_table(scenario.parent / "own.json", draft=None)
    with pytest.raises(InputError, match="knows no drafter") as caught:
        explain(scenario)
    assert caught.value.problems[0].field == "calibration"


def test_a_missing_drafter_is_told_where_the_arm_takes_its_calibration(scenario):
    write_table(scenario.parent / "other.json", draft=None)
    scenario.write_text(scenario.read_text() + "arms: {x: {calibration: other.json}}\n")
    with pytest.raises(InputError, match="knows no drafter") as caught:
        explain(scenario)
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (8, "arms.x.calibration")


def test_costs_that_are_zero_are_told(scenario):
    free = "calibration={kind: affine, target_fixed_ms: 10}"
    assert any("drafting costs nothing" in warning for warning in explain(None, [free])["warnings"])


def test_costs_without_stairs_have_none(scenario):
    document = explain(None, ["workload.requests=20"])
    assert document["next_stair"] is None
    assert document["ridge_rows"] is None
    assert "head" not in document["step"]["parts"]


def test_another_arm_and_other_drafts(scenario, capsys):
    plain = told(capsys, scenario, "--arm", "baseline")
    assert plain["step"]["drafts"] == 0
    assert plain["step"]["parts"] == plain["without_speculation"]["parts"]
    arms = ("--set", "arms={k5: {speculation.num_speculative_tokens: 5}}")
    by_arm = told(capsys, scenario, *arms, "--arm", "k5")
    by_drafts = told(capsys, scenario, "--drafts", "5")
    assert by_arm["step"] == by_drafts["step"]
    assert told(capsys, scenario, "--drafts", "0")["step"]["parts"] == plain["step"]["parts"]


def test_the_screen_says_what_the_document_says(scenario, capsys):
    assert main(["explain", str(scenario), "--batch", "60"]) == 0
    out, _ = capsys.readouterr()
    assert "60 requests with 3 drafts each" in out
    assert "next stair: above 256 rows" in out
    assert "ridge point: 295 rows; this step has 240" in out
    assert re.search(r"^graph mode +full +full", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "field", "says"),
    [
        (["--arm", "speculativ"], "--arm", "did you mean 'speculative'?"),
        (["--arm", "baseline", "--drafts", "2"], "--drafts", "drafts nothing"),
        (["--batch", "0"], "--batch", ""),
        (["--drafts", "65"], "--drafts", ""),
        (["--set", "run.sed=1"], "run.sed", "did you mean 'seed'"),
    ],
)
def test_a_mistake_is_told_in_one_line(capsys, line, field, says):
    assert main(["explain", *line]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf".+:1:\d+: {re.escape(field)}: .+, .+, .+\n", err)
    assert says in err


def test_a_file_that_is_not_there(capsys):
    assert main(["explain", "nowhere.yaml"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nowhere.yaml:1:1: file: ")


def test_a_look_up_is_explained_with_the_drafts_that_it_finds(capsys):
    """Most rounds find nothing: the step has fewer rows than batch x (1 + k), and says per token what a run says."""
    found = told(capsys, "ngram-summarisation", "--batch", 16)
    step, k = found["step"], found["step"]["drafts"]
    assert 16 < step["rows"] < 16 * (1 + k)
    assert step["ms_per_committed_token"] < found["without_speculation"]["ms_per_committed_token"]
