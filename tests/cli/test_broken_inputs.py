"""Broken inputs: each gives exit 2, nothing on stdout, and lines with the place, the key, the rule and a remedy."""

import os
import re
from pathlib import Path

import pytest
from broken_scenarios import LINE, SLICE, VALID, Broken, assert_told, at, identity, override, problems_of, whole

from sim.cli.main import main
from sim.inputs.arms import resolve_arms
from sim.inputs.load import load_scenario

AFFINE = "calibration: {kind: affine, "
COSTS = '"costs": {"form": "affine", "target_fixed_ms": 1}'
PROVENANCE = '"provenance": {"source": "s", "date": "d", "licence": "l"}'
CALIBRATION = (
    '{"schema": "specsim-calibration/1", "name": "c", "kind": "measured",\n'
    f' {PROVENANCE},\n "hardware": {{"gpu": "g"}}, "models": {{"target": "t"}},\n {COSTS}}}\n'
)


def calibration(name: str, content: str | bytes, found: str, line: int, words: str = "") -> Broken:
    """A calibration file with a mistake in it."""
    return Broken(name, found, line, {1: "calibration: c.json"}, words=words, files={"c.json": content})


TEXT = [
    whole("empty", "", "file", 1, "is empty"),
    whole("only a comment", "# nothing\n", "file", 1, "is empty"),
    whole("a list", "- 1\n", "file", 1, "is a list"),
    whole("prose", "simulate something", "file", 1, "is a single value"),
    whole("binary", bytes(range(256)) * 4, "file", 0),
    whole("nul", b"calibration: a\x00b\n", "file", 1, "U+0000"),
    whole("utf-16", VALID.encode("utf-16"), "file", 1, "UTF-8"),
    whole("latin-1", VALID.replace("chat", "chât").encode("latin-1"), "file", 6, "UTF-8"),
    whole("truncated JSON", '{"calibration": {"kind": "affine"', "calibration", 0, "cannot be read"),
    whole("truncated YAML", VALID[: VALID.index("alpha")], "workload.slices.0.acceptance", 0, "cannot be read"),
    whole("huge", b"a: " + b"x" * 5_000_000, "file", 1, "bytes"),
    whole("many values", "workload: [" + "1," * 120_000 + "1]", "file", 1, "more values"),
    whole("deep", "workload: " + "[" * 3000 + "]" * 3000, "workload", 1),
    whole("two documents", VALID + "---\n" + VALID, "file", 23, "second document"),
    whole("tab", "calibration: x\nworkload:\n\trequests: 1\n", "workload", 3, "spaces"),
    whole("alias bomb", "a: &a [x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(99)), "b0.0", 2, "alias"),
    whole("merge key", VALID.replace("run: {", "run: {<<: {seed: 2}, "), "run", 21, "merge key"),
    whole("python tag", VALID.replace("seed: 1", "seed: !!python/name:os.system 1"), "run.seed", 21, "tag"),
    at(21, "run: {seed: 1, seed: 2}", "run.seed", "given twice"),
    at(21, "run: {seed: 1, 5: 2}", "run", "key 5"),
    whole("a calibration", CALIBRATION, "schema", 1, "name the scenario file"),
    whole("a result without scenario", '{"schema": "specsim-result/1", "arms": {}}', "schema", 1),
]

KEYS = [
    at(17, "engin: {style: vllm}", "engin", "did you mean 'engine'"),
    at(17, "engine: {max_num_seq: 8}", "engine.max_num_seq", "did you mean 'max_num_seqs'"),
    at(4, "  arrivals: {kind:closed}", "workload.arrivals", "space after the colon"),
    at(4, "  arrivals: {kind: closed, concurrency:4}", "workload.arrivals.concurrency", "space after the colon"),
    at(4, "  arrivals: {knd: closed, concurrency: 4}", "workload.arrivals", "write kind for 'knd'"),
    at(4, "  arrivals: {kind: closed, rate: 4}", "workload.arrivals.rate", "unknown key"),
    at(4, "  arrivals: {kind: closed}", "workload.arrivals.concurrency", "is missing"),
    at(4, "  arrivals: {concurrency: 4}", "workload.arrivals", "no kind"),
    at(4, "  arrivals: {kind: poison, rate: 1}", "workload.arrivals.kind", "did you mean 'poisson'"),
    at(4, None, "workload.arrivals", "is missing", 2),
    at(3, None, "workload.requests", "is missing", 2),
    at(3, "  requests: 5\n  duration_s: 60", "workload.duration_s", "remove one", 4),
    at(1, None, "calibration", "is missing", 1),
    at(1, "calibration: h100-llama-3.1-8b-eagel", "calibration", "did you mean 'h100-llama-3.1-8b-eagle'"),
    at(1, "calibration: nowhere.json", "calibration", "No such file"),
    at(1, "calibration: .", "calibration", "unknown calibration"),
    at(1, "calibration: ./", "calibration", "is a directory"),
    at(16, "speculation: {method: dflash, num_speculative_tokens: 3}", "speculation.method", "not supported yet"),
    at(16, "speculation: {method: eagel, num_speculative_tokens: 3}", "speculation.method", "did you mean 'eagle'"),
    at(16, "speculation: {method: eagle}", "speculation.num_speculative_tokens", "is missing"),
    at(17, "engine: {style: trtllm}", "engine.style", "not supported yet"),
    at(17, "engine:", "engine", "no value"),
    at(17, "engine: vllm", "engine", "a mapping"),
    at(21, "run: []", "run", "a mapping"),
    at(6, "    - name: 5", f"{SLICE}.name", "in quotes"),
    at(6, "    - name: ''", f"{SLICE}.name", "at least 1"),
    at(11, "    - name: chat", "workload.slices.1.name", "is the name of slice 0"),
]

VALUES = [
    at(3, "  requests: 0", "workload.requests", "at least 1"),
    at(3, "  requests: -5", "workload.requests", "at least 1"),
    at(3, "  requests: 10000001", "workload.requests", "at most 10000000"),
    at(3, "  requests: 2.5", "workload.requests", "whole number"),
    at(3, "  requests: true", "workload.requests", "boolean"),
    at(3, "  requests: yes", "workload.requests", "text"),
    at(3, "  requests: 1:30", "workload.requests", "text"),
    at(3, "  requests: 0x10", "workload.requests", "text"),
    at(3, "  requests: 2024-01-01", "workload.requests", "text"),
    at(3, "  requests: many", "workload.requests", "text"),
    at(3, "  requests:", "workload.requests", "is missing"),
    at(3, f"  requests: {'9' * 5000}", "workload.requests", "finite"),
    at(4, "  arrivals: {kind: closed, concurrency: 0}", "workload.arrivals.concurrency", "at least 1"),
    at(4, "  arrivals: {kind: poisson, rate: 0}", "workload.arrivals.rate", "above 0"),
    at(4, "  arrivals: {kind: poisson, rate: .nan}", "workload.arrivals.rate", "finite"),
    at(4, "  arrivals: {kind: poisson, rate: Infinity}", "workload.arrivals.rate", "finite"),
    at(4, "  arrivals: {kind: poisson, rate: 1e999}", "workload.arrivals.rate", "finite"),
    at(4, "  arrivals: {kind: poisson, rate: 1e-300}", "workload.arrivals.rate", "higher rate"),
    at(4, "  arrivals: {kind: gamma, rate: 1, cv: -1}", "workload.arrivals.cv", "above 0"),
    at(4, "  arrivals: {kind: closed, concurrency: 4, think_time_s: -1}", "workload.arrivals.think_time_s"),
    at(7, "      share: 0.7", f"{SLICE}.share", "add up to 0.95"),
    at(7, "      share: 75", f"{SLICE}.share", "write 0.75"),
    at(7, "      share: 75%", f"{SLICE}.share", "0.75"),
    at(8, "      prompt_tokens: 0", f"{SLICE}.prompt_tokens", "at least 1"),
    at(8, "      prompt_tokens: [100]", f"{SLICE}.prompt_tokens", "whole number"),
    at(8, "      prompt_tokens: 1e99", f"{SLICE}.prompt_tokens", "smaller"),
    at(8, None, f"{SLICE}.prompt_tokens", "is missing", 6),
    at(9, "      output_tokens: {kind: geometrc, mean: 20}", f"{SLICE}.output_tokens.kind", "'geometric'"),
    at(9, "      output_tokens: {kind: geometric, mean: 0.5}", f"{SLICE}.output_tokens.mean", "at least 1"),
    at(9, "      output_tokens: {kind: uniform, low: 9, high: 3}", f"{SLICE}.output_tokens.low", "above high"),
    at(9, "      output_tokens: {kind: lognormal, median: 9, p90: 3}", f"{SLICE}.output_tokens.p90", "below median"),
    at(9, "      output_tokens: {kind: lognormal, median: 1, p90: 9999}", f"{SLICE}.output_tokens.p90", "at most 1000"),
    at(10, None, f"{SLICE}.acceptance", "is missing", 6),
    at(10, "      acceptance: 0.8", f"{SLICE}.acceptance", "a mapping"),
    at(10, "      acceptance: {kind: iid, alpha: 1.5}", f"{SLICE}.acceptance.alpha", "0.015"),
    at(10, "      acceptance: {kind: iid, alpha: '0.7'}", f"{SLICE}.acceptance.alpha", "text"),
    at(
        10,
        "      acceptance: {kind: rate, acceptance_rate: 80, num_speculative_tokens: 4}",
        f"{SLICE}.acceptance.acceptance_rate",
        "write 0.8",
    ),
    at(
        10,
        "      acceptance: {kind: length, acceptance_length: 5.5, num_speculative_tokens: 4}",
        f"{SLICE}.acceptance.acceptance_length",
        "at most 5",
    ),
    at(15, "      acceptance: {kind: per_position}", "workload.slices.1.acceptance.conditional", "is missing"),
    at(
        15,
        "      acceptance: {kind: per_position, conditional: [0.5], unconditional: [0.5]}",
        "workload.slices.1.acceptance.unconditional",
        "keep one",
    ),
    at(
        15,
        "      acceptance: {kind: per_position, unconditional: [0.5, 0.6]}",
        "workload.slices.1.acceptance.unconditional.1",
        "never rise",
    ),
    at(
        15,
        "      acceptance: {kind: per_position, conditional: [0.5, 0.6], fitted_k: 1}",
        "workload.slices.1.acceptance.fitted_k",
        "give 2 or more",
    ),
    at(15, "      acceptance: {kind: per_position, conditional: []}", "workload.slices.1.acceptance.conditional"),
    at(15, "      acceptance: {kind: replay}", "workload.slices.1.acceptance.path", "is missing"),
    at(16, "speculation: {method: eagle, num_speculative_tokens: 65}", "speculation.num_speculative_tokens", "64"),
    at(16, "speculation: {method: eagle, num_speculative_tokens: -1}", "speculation.num_speculative_tokens", "0"),
    at(16, "speculation: {method: eagle, num_speculative_tokens: on}", "speculation.num_speculative_tokens", "text"),
    at(17, "engine: {max_num_batched_tokens: 3}", "engine.max_num_batched_tokens", "takes 4 tokens"),
    at(17, "engine: {max_num_scheduled_tokens: 3}", "engine.max_num_scheduled_tokens", "takes 4 tokens"),
    at(
        17,
        "engine: {max_num_batched_tokens: 64, max_num_scheduled_tokens: 65}",
        "engine.max_num_scheduled_tokens",
        "give 64 or less",
    ),
    at(17, "engine: {max_model_len: 150}", "workload.slices.1.prompt_tokens", "max_model_len is 150", 13),
    at(
        17,
        "engine: {enable_chunked_prefill: false, max_num_batched_tokens: 150}",
        "workload.slices.1.prompt_tokens",
        "chunk",
        13,
    ),
    at(17, "engine: {enable_chunked_prefill: 1}", "engine.enable_chunked_prefill", "true or false"),
    at(17, "engine: {gpu_memory_utilization: 90}", "engine.gpu_memory_utilization", "write 0.9"),
    at(17, "engine: {num_gpu_blocks: 1}", "engine.num_gpu_blocks", "give 2 or more"),
    at(17, "engine: {replicas: 1025}", "engine.replicas", "at most 1024"),
    at(19, "slo: {percentile: 0.95}", "slo.percentile", "at least 1"),
    at(19, "slo: {percentile: 100}", "slo.percentile", "below 100"),
    at(19, "slo: {percentile: median}", "slo.percentile", "text"),
    at(20, "price: {usd_per_gpu_hour: -1}", "price.usd_per_gpu_hour", "at least 0"),
    at(21, "run: {seed: -1}", "run.seed", "at least 0"),
    at(21, "run: {replications: 0}", "run.replications", "at least 1"),
    at(1, AFFINE + "target_fixed_ms: -1}", "calibration.target_fixed_ms", "at least 0"),
    at(1, AFFINE + "draft_fixed_ms: 1}", "calibration", "costs nothing"),
    at(1, AFFINE + "target_fixed: 1}", "calibration.target_fixed", "did you mean 'target_fixed_ms'"),
]

ARMS = [
    at(22, "arms: {k5: {speculation.num_speculative_tokens: 65}}", "arms.k5.speculation.num_speculative_tokens", "64"),
    at(22, "arms: {k5: {speculation.num_speculative_token: 5}}", "arms.k5.speculation.num_speculative_token", "mean"),
    at(22, "arms: {k5: {speculation: {num_speculative_tokens: x}}}", "arms.k5.speculation.num_speculative_tokens"),
    at(22, "arms: {k5: {engine.max_num_batched_tokens: 2}}", "arms.k5.engine.max_num_batched_tokens", "takes 4"),
    at(22, "arms: {slow: {workload.arrivals.concurrency: 1}}", "arms.slow.workload.arrivals.concurrency", "override"),
    at(22, "arms: {other: {calibration: nothing}}", "arms.other.calibration", "unknown calibration"),
    at(22, "arms: {x: {acceptance: {chatt: {kind: iid, alpha: 0.5}}}}", "arms.x.acceptance.chatt", "mean 'chat'"),
    at(22, "arms: {x: {acceptance: {kind: iid, alpha: 5}}}", "arms.x.acceptance.alpha", "write 0.05"),
    at(22, "arms: {x: {output_tokens: 5}}", "arms.x.output_tokens", "lossless"),
    at(22, "arms: {x: {success_rate: 0.5}}", "arms.x.success_rate", "lossless"),
    at(22, "arms: {baseline: {engine.max_num_seqs: 5}}", "arms.baseline.engine.max_num_seqs", "scenario itself"),
    at(22, "arms: {x: 5}", "arms.x", "a mapping"),
    at(22, "arms: {'': {}}", "arms.", "printable name"),
    at(18, "quality: {contract: lossy}", "arms.speculative.success_rate", "is missing for chat, code"),
    Broken("arms alone", "arms.x", 22, {16: "", 22: "arms: {x: {engine.max_num_seqs: 5}}"}, words="speculative arm"),
]

SETS = [
    override("run.seed", "--set", "no ="),
    override("=1", "--set", "is no path"),
    override("run.sed=1", "run.sed", "did you mean 'seed'"),
    override("speculation.k=1", "speculation.k", "unknown key"),
    override("workload.slices.2.share=1", "workload.slices.2.share", "0 to 1"),
    override("run.seed.x=1", "run.seed.x", "run.seed is 1"),
    override("run.seed=[1", "run.seed", "cannot be read"),
    override("run.seed=abc", "run.seed", "text"),
    override("arms.k5.speculation.num_speculative_tokens=99", "arms.k5.speculation.num_speculative_tokens", "64"),
]

CALIBRATIONS = [
    calibration("empty calibration", "", "file", 1, "is empty"),
    calibration("truncated calibration", CALIBRATION[:-20], "costs", 0, "cannot be read"),
    calibration("binary calibration", b"\x89PNG\r\n\x1a\n\xff", "file", 1, "UTF-8"),
    calibration("NaN cost", CALIBRATION.replace('_ms": 1', '_ms": NaN'), "costs.target_fixed_ms", 4, "finite"),
    calibration("unknown cost", CALIBRATION.replace("target_fixed_ms", "target_fix_ms"), "costs.target_fix_ms", 4),
    calibration("no provenance", CALIBRATION.replace(PROVENANCE + ",", ""), "provenance", 1, "is missing"),
    calibration("another schema", CALIBRATION.replace("calibration/1", "calibration/9"), "schema", 1, "is unknown"),
    calibration("free steps", CALIBRATION.replace('_ms": 1', '_ms": 0'), "costs", 4, "cost nothing"),
    calibration("a scenario", VALID, "calibration", 1, "unknown key"),
]

FOUND_BY_LOADING = [*TEXT, *KEYS, *VALUES, *ARMS, *SETS, *CALIBRATIONS]

# Found when the workload and the engine are built: only the whole command can show them.
FOUND_LATER = [
    at(8, "      prompt_tokens: {kind: empirical, path: none.txt}", f"{SLICE}.prompt_tokens.path"),
    Broken(
        "lengths no numbers",
        "length",
        2,
        {8: "      prompt_tokens: {kind: empirical, path: l.txt}"},
        files={"l.txt": "12\nx\n"},
    ),
    Broken(
        "a prompt that fits into no KV",
        "workload.slices",
        0,
        {1: AFFINE + "target_fixed_ms: 10, num_gpu_blocks: 5, num_gpu_blocks_baseline: 5}"},
    ),
]


def test_the_valid_scenario_is_valid(tmp_path):
    arms = resolve_arms(load_scenario(Broken("valid", "", 0).write(tmp_path)))
    assert [arm.name for arm in arms] == ["baseline", "speculative"]
    with_calibration = calibration("valid", CALIBRATION, "", 0).write(tmp_path)
    assert load_scenario(with_calibration).calibrations["calibration"].name == "c"


def test_the_table_is_long_and_has_no_row_twice():
    rows = [*FOUND_BY_LOADING, *FOUND_LATER]
    assert len({row.name for row in rows}) == len(rows) >= 100


@pytest.mark.parametrize("case", FOUND_BY_LOADING, ids=identity)
def test_loading_tells_the_place_the_key_and_the_remedy(case, tmp_path):
    assert_told(problems_of(case.write(tmp_path), case.sets), case)


@pytest.mark.parametrize("case", [*FOUND_BY_LOADING, *FOUND_LATER], ids=identity)
def test_the_command_exits_2_with_one_line_each(case, tmp_path, capsys):
    sets = [part for text in case.sets for part in ("--set", text)]
    assert main(["run", str(case.write(tmp_path)), "--json", *sets]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert_told(err.splitlines(), case)


def test_files_that_are_no_files_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing", Path("/dev/zero"), tmp_path / "a\0b"):
        assert all(LINE.fullmatch(line) for line in problems_of(path, ()))


def test_every_mistake_is_told_at_once(tmp_path):
    lines = {3: "  requests: -1", 7: "      share: 0.5", 17: "engin: {}", 21: "run: {seed: 1, seed: 1}", 22: "arms: 5"}
    told = problems_of(Broken("many", "", 0, lines).write(tmp_path), ("run.sed=1",))
    assert [re.search(r": ([\w.]+): ", line)[1] for line in told] == [
        "run.sed",
        "workload.requests",
        "workload.slices.0.share",
        "engin",
        "run.seed",
        "arms",
    ]
