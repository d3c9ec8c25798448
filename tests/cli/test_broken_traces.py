"""Broken traces and times: each gives exit 2, nothing on stdout, and lines with place, key, rule and remedy."""

import pytest
from broken_scenarios import SLICE, Broken, assert_told, at, identity, problems_of

from sim.cli.main import main


def trace_columns(columns: str, found: str, words: str, trace_format: str = "auto") -> Broken:
    line = f"  arrivals: {{kind: trace, path: t, format: {trace_format}, columns: {{{columns}}}}}"
    return at(4, line, f"workload.arrivals.columns.{found}".rstrip("."), words)


TRACE = {4: "  arrivals: {kind: trace, path: t.csv}", 8: None, 9: None, 13: None, 14: None}
FOUND_BY_LOADING = [
    Broken("lengths beside a trace", f"{SLICE}.prompt_tokens", 8, {4: TRACE[4]}, words="a trace brings the lengths"),
    at(4, "  arrivals: {kind: trace}", "workload.arrivals.path", "is missing"),
    at(4, "  arrivals: {kind: trace, path: t, window_s: [9, 3]}", "workload.arrivals.window_s", "smaller time first"),
    at(4, "  arrivals: {kind: trace, path: t, window_s: [9]}", "workload.arrivals.window_s", "at least 2"),
    at(4, "  arrivals: {kind: trace, path: t, scale: 0}", "workload.arrivals.scale", "above 0"),
    at(4, "  arrivals: {kind: trace, path: t, format: azur}", "workload.arrivals.format", "did you mean 'azure'"),
    at(4, "  arrivals: {kind: trace, path: t, rate: 2, scale: 2}", "workload.arrivals.scale", "beside rate"),
    at(4, "  arrivals: {kind: trace, path: t, format: csv}", "workload.arrivals.columns", "is missing"),
    trace_columns("prompt_tokens: p", "output_tokens", "is missing"),
    trace_columns("prompt_tokens: p, output_tokens: o, promt: x", "promt", "unknown key"),
    trace_columns("prompt_tokens: p, output_tokens: p", "output_tokens", "already"),
    trace_columns("prompt_tokens: p, output_tokens: o, arrival_unit: s", "arrival_unit", "without arrival"),
    trace_columns("prompt_tokens: p, output_tokens: o, hash_ids: h", "hash_ids", "hash_block_tokens"),
    trace_columns("prompt_tokens: p, output_tokens: o, hash_block_tokens: 9", "hash_block_tokens", "hash_ids"),
    trace_columns("prompt_tokens: p, output_tokens: o", "", "columns of its own", "vidur"),
    at(3, "  duration_s: 0", "workload.duration_s", "above 0"),
    at(3, "  duration_s: 1e9", "workload.duration_s", "at most 100000000"),
    at(3, "  duration_s: true", "workload.duration_s", "boolean"),
    Broken(
        "duration at once",
        "workload.duration_s",
        3,
        {3: "  duration_s: 5", 4: "  arrivals: {kind: at_once}"},
        words="give `requests`",
    ),
    Broken(
        "duration of too many",
        "workload.duration_s",
        3,
        {3: "  duration_s: 1000", 4: "  arrivals: {kind: poisson, rate: 1e5}"},
        words="at most 10000000",
    ),
]

# Found when the file is read: only the whole command can show them.
FOUND_LATER = [
    Broken("trace missing", "workload.arrivals.path", 4, TRACE),
    Broken("trace empty", "header", 1, TRACE, files={"t.csv": ""}),
    Broken("trace binary", "file", 0, TRACE, files={"t.csv": bytes(range(256))}),
    Broken("trace is prose", "header", 1, TRACE, files={"t.csv": "hello\nworld\n"}),
    Broken("trace cut off", "row", 1, TRACE, words="cut off", files={"t.csv": '{"timestamp": 0, "input_len'}),
    Broken(
        "trace without arrivals",
        "workload.arrivals.path",
        3,
        TRACE | {3: None},
        words="add `rate",
        files={"t.csv": "num_prefill_tokens,num_decode_tokens\n5,5\n"},
    ),
]


@pytest.mark.parametrize("case", FOUND_BY_LOADING, ids=identity)
def test_loading_tells_the_place_the_key_and_the_remedy(case, tmp_path):
    assert_told(problems_of(case.write(tmp_path), case.sets), case)


@pytest.mark.parametrize("case", [*FOUND_BY_LOADING, *FOUND_LATER], ids=identity)
def test_the_command_exits_2_with_one_line_each(case, tmp_path, capsys):
    assert main(["run", str(case.write(tmp_path)), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert_told(err.splitlines(), case)
