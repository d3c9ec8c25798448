"""Every trace format: the same requests, however the file is packed or spelled, and the same rules for broken ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from trace_files import ARRIVAL_MS, FILES, HASHES, OUTPUT_TOKENS, PROMPT_TOKENS

from sim.formats import text_file, trace_table
from sim.formats.traces import read_trace
from sim.inputs.errors import InputError
from sim.inputs.scenario import TraceColumnMap

MOONCAKE = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces" / "mooncake_synthetic_trace.jsonl"
BY_NAME = {file.name: file for file in FILES}
every_format = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def content_of(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


def problems_of(path, *how):
    with pytest.raises(InputError) as caught:
        read_trace(path, *how)
    return caught.value.problems


def read_text(tmp_path, text, *how):
    path = tmp_path / "trace"
    path.write_text(text)
    return read_trace(path, *how)


@every_format
@pytest.mark.parametrize("how", ["auto", "stated"])
@pytest.mark.parametrize(
    "spelled",
    [
        content_of,
        lambda lines: "\r\n".join(lines).encode(),
        lambda lines: content_of([*lines, "", "  ", ""]),
        lambda lines: b"\xef\xbb\xbf" + content_of(lines),
        lambda lines: gzip.compress(content_of(lines)),
        lambda lines: gzip.compress(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode()),
    ],
    ids=["plain", "crlf", "blank end", "byte order mark", "gzip", "all of it"],
)
def test_every_format_and_spelling_gives_the_same_requests(tmp_path, file, spelled, how):
    trace_format = "auto" if how == "auto" else file.name
    trace = read_trace(file.write(tmp_path, spelled(file.lines)), trace_format, file.columns)
    assert trace.arrival_ms == pytest.approx(ARRIVAL_MS, abs=1e-6)
    assert trace.prompt_tokens.tolist() == list(PROMPT_TOKENS)
    assert trace.output_tokens.tolist() == list(OUTPUT_TOKENS)
    assert trace.arrival_ms.dtype == np.float64
    assert trace.prompt_tokens.dtype == trace.output_tokens.dtype == np.int64
    assert (trace.hash_ids is not None) == (file.name == "mooncake")


@every_format
def test_a_file_that_was_cut_off_names_its_last_line(tmp_path, file):
    last = file.lines[-1]
    ends = range(1, len(last) - 1 if file.first_row == 1 else max(map(last.rfind, ",;")) + 2)
    for end in (*ends, 1):
        cut = content_of([*file.lines[:-1], last[:end]])
        problems = problems_of(file.write(tmp_path, cut), "auto", file.columns)
        assert {problem.line for problem in problems} == {len(file.lines)}
    assert "cut off" in str(problems[0])


@every_format
def test_a_packed_file_that_was_cut_off_is_refused(tmp_path, file):
    packed = gzip.compress(content_of(file.lines * 50))
    (problem,) = problems_of(file.write(tmp_path, packed[:-12]), "auto", file.columns)
    assert "damaged gzip data" in str(problem)


@every_format
def test_rows_out_of_order_are_named(tmp_path, file):
    first = file.first_row - 1
    lines = [*file.lines[:first], file.lines[first + 1], file.lines[first], *file.lines[first + 2 :]]
    (problem,) = problems_of(file.write(tmp_path, content_of(lines)), "auto", file.columns)
    assert problem.line == file.first_row + 1
    assert f"on line {file.first_row}" in str(problem)
    assert "sort the rows" in str(problem)


@every_format
def test_a_file_without_rows_is_refused(tmp_path, file):
    for content in (b"", b"\n\n", gzip.compress(b""), b"\xef\xbb\xbf"):
        (problem,) = problems_of(file.write(tmp_path, content), "auto", file.columns)
        assert "the file is empty" in str(problem)
    if file.first_row == 2:
        (problem,) = problems_of(file.write(tmp_path, content_of(file.lines[:1])), "auto", file.columns)
        assert "no rows" in str(problem)


@every_format
@pytest.mark.parametrize("value", ["0", "-3", "1.5", "ten", "", "10000001", "1_0", "９", "9" * 5000])
def test_a_bad_count_is_named_with_its_place(tmp_path, file, value):
    at = file.first_row + 1
    count = str(OUTPUT_TOKENS[2])
    line = file.lines[at]
    column = line.rindex(count)
    broken = line[:column] + value + line[column + len(count) :]
    lines = [*file.lines[:at], broken, *file.lines[at + 1 :]]
    problems = problems_of(file.write(tmp_path, content_of(lines)), "auto", file.columns)
    assert [problem.line for problem in problems] == [at + 1]
    assert problems[0].column == (column + 1 if file.first_row == 2 else problems[0].column)


def test_json_names_the_value_and_what_is_missing(tmp_path):
    lines = list(BY_NAME["mooncake"].lines)
    lines[1] = lines[1].replace('"input_length": 1024', '"input_length": "many"').replace("4314.5", "null")
    lines[2] = lines[2].replace('"output_length"', '"outputs"')
    told = [str(one) for one in problems_of(BY_NAME["mooncake"].write(tmp_path, content_of(lines)))]
    assert [text.split("trace:")[1].split(", a ")[0] for text in told] == [
        "2:15: timestamp: is missing",
        "2:37: input_length: 'many'",
        "3:1: output_length: is missing",
    ]


def test_a_known_format_is_told_by_its_columns_in_any_order(tmp_path):
    text = "x,num_decode_tokens,arrived_at,num_prefill_tokens\n7,5,0.5,100\n8,6,1.75,200\n"
    trace = read_text(tmp_path, text)
    assert trace.arrival_ms.tolist() == [0, 1250]
    assert trace.prompt_tokens.tolist() == [100, 200]
    assert trace.output_tokens.tolist() == [5, 6]


def test_vidur_lengths_may_come_without_arrivals(tmp_path):
    text = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85\n2015,156,2171,12.9\n"
    trace = read_text(tmp_path, text)
    assert trace.arrival_ms is None
    assert trace.prompt_tokens.tolist() == [3772, 2015]
    with pytest.raises(InputError, match="lacks TIMESTAMP"):
        read_text(tmp_path, text, "azure")


def test_an_unknown_first_line_says_what_is_known_and_what_to_do(tmp_path):
    for first in ("a,b,c", '{"a": 1}', "[1, 2]", "hello"):
        with pytest.raises(InputError) as caught:
            read_text(tmp_path, f"{first}\n1,2,3\n")
        text = str(caught.value)
        assert ":1:1: header: " in text
        assert "vidur has arrived_at" in text
        assert "`columns`" in text


def test_a_name_that_the_file_lacks_is_told_with_those_it_has(tmp_path):
    names = TraceColumnMap(arrival="when", prompt_tokens="in", output_tokens="out")
    for text in ("time,in,out\n1,2,3\n", '{"time": 1, "in": {"x": 2}, "out": 3}\n'):
        with pytest.raises(InputError, match=r"trace:1:1: when: .*lacks when, it has time, in.*correct the names"):
            read_text(tmp_path, text, "auto", names)


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    text = "arrived_at,num_prefill_tokens,num_decode_tokens,num_prefill_tokens\n0,1,2,3\n"
    with pytest.raises(InputError, match=r"trace:1:1: num_prefill_tokens: the header has num_prefill_tokens 2 times"):
        read_text(tmp_path, text)


def test_more_lines_than_requests_can_be_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_file, "MAX_LINES", 3)
    with pytest.raises(InputError, match=r"trace:1:1: file: more lines than that, at most 3 are read"):
        read_text(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n" + "0,1,2\n" * 3)
    monkeypatch.undo()
    monkeypatch.setattr(trace_table, "MAX_REQUESTS", 2)
    with pytest.raises(InputError, match=r"trace:1:1: file: 3 rows, a trace has at most 2"):
        read_text(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n" + "0,1,2\n" * 3)


@pytest.mark.parametrize(
    ("unit", "cells", "gap_ms"),
    [
        (None, ("1714564800.25", "1714564801.5"), 1250),
        ("s", ("-1", "0.25"), 1250),
        ("ms", ("1714564800250", "1714564801500"), 1250),
        ("us", ("1.71456480025e15", "1714564801500000"), 1250),
        ("ns", ("1714564800250000000", "1714564801500000000"), 1250),
        (None, ("2024-05-01T12:00:00.25Z", "2024-05-01 12:00:01.5"), 1250),
    ],
)
def test_units_of_arrivals(tmp_path, unit, cells, gap_ms):
    names = TraceColumnMap(arrival="t", prompt_tokens="in", output_tokens="out", arrival_unit=unit)
    trace = read_text(tmp_path, f"t,in,out\n{cells[0]},1,1\n{cells[1]},1,1\n", "csv", names)
    assert trace.arrival_ms == pytest.approx([0, gap_ms], abs=1e-3)


def test_a_clock_in_ms_is_not_taken_for_seconds(tmp_path):
    names = TraceColumnMap(arrival="t", prompt_tokens="in", output_tokens="out")
    with pytest.raises(InputError, match=r"trace:3:1: t: .*give arrival_unit: ms, us or ns"):
        read_text(tmp_path, "t,in,out\n1714564800250,1,1\n1714564801500,1,1\n", "csv", names)


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "1e99", "", "0x10", "1,5", "true", "2023-02-30 00:00:00"])
def test_no_number_is_made_of_what_is_none(tmp_path, cell):
    names = TraceColumnMap(arrival="t", prompt_tokens="in", output_tokens="out", arrival_unit="s")
    for text, line in ((f"t\tin\tout\n{cell}\t1\t1\n", 2), (json.dumps({"t": cell, "in": 1, "out": 1}), 1)):
        with pytest.raises(InputError, match=rf"trace:{line}:\d+: t: .*a time in s is needed"):
            read_text(tmp_path, text, "auto", names)


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "5",
        '{"timestamp": NaN}',
        '{"timestamp": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 20_000,
        '"x',
        "\0",
    ],
)
def test_a_line_that_is_no_object_is_named(tmp_path, line):
    lines = [*BY_NAME["mooncake"].lines, line]
    (problem,) = problems_of(BY_NAME["mooncake"].write(tmp_path, content_of(lines)))
    assert problem.line == len(lines)
    assert len(str(problem)) < 600


# --- block hashes --------------------------------------------------------------------------------------------------


def test_block_hashes_stay_with_their_requests(tmp_path):
    trace = read_trace(BY_NAME["mooncake"].write(tmp_path))
    assert trace.hash_block_tokens == 512
    assert trace.hash_offsets.tolist() == [0, 1, 3, 5, 6]
    assert trace.hash_ids.tolist() == [one for ids in HASHES for one in ids]
    assert trace.hash_ids.dtype == trace.hash_offsets.dtype == np.int64
    cut = trace.rows(1, 3)
    assert cut.hash_offsets.tolist() == [0, 2, 4]
    assert cut.hash_ids.tolist() == [1, 2, 1, 3]


def test_a_trace_without_hashes_and_other_block_sizes(tmp_path):
    trace = read_text(tmp_path, '{"timestamp": 1, "input_length": 5, "output_length": 5}\n')
    assert (trace.hash_offsets, trace.hash_ids, trace.hash_block_tokens) == (None, None, None)
    names = TraceColumnMap(
        arrival="timestamp",
        prompt_tokens="input_length",
        output_tokens="output_length",
        hash_ids="blocks",
        hash_block_tokens=16,
    )
    text = '{"timestamp": 61.1, "input_length": 33, "output_length": 5, "blocks": [5, -6]}'
    trace = read_text(tmp_path, text, "auto", names)
    assert trace.hash_ids.tolist() == [5, -6]
    assert trace.hash_block_tokens == 16


@pytest.mark.parametrize("hashes", ["[1]", "[1, 2, 3, 4]", '[1, "a", 2]', "7", "null", "[1, 2, true]", "[1, 2, 1e99]"])
def test_hashes_that_do_not_fit_are_named(tmp_path, hashes):
    good = '{"timestamp": 1, "input_length": 1030, "output_length": 5, "hash_ids": [1, 2, 3]}\n'
    with pytest.raises(InputError, match=r"trace:2:\d+: hash_ids: .*one for each block of the prompt"):
        read_text(tmp_path, good + good.replace("[1, 2, 3]", hashes))


# --- a published trace -----------------------------------------------------------------------------------------------


def test_published_statistics_of_the_mooncake_synthetic_trace():
    if not MOONCAKE.exists():
        pytest.skip("the Mooncake trace is not next to the repository")
    trace = read_trace(MOONCAKE)
    gaps_ms = np.diff(trace.arrival_ms)
    assert len(trace) == 3993
    assert np.percentile(trace.prompt_tokens, [10, 50, 90, 99]) == pytest.approx([30, 11587, 38611, 66456], abs=1)
    assert np.percentile(trace.output_tokens, [10, 50, 90, 99]) == pytest.approx([4, 69, 389, 768], abs=1)
    assert trace.prompt_tokens.mean() == pytest.approx(15325, abs=0.6)
    assert trace.output_tokens.mean() == pytest.approx(149, abs=0.6)
    assert 1000 / gaps_ms.mean() == pytest.approx(3.91, abs=0.005)
    assert gaps_ms.std() / gaps_ms.mean() == pytest.approx(1.01, abs=0.005)
    _, counts = np.unique(trace.hash_ids, return_counts=True)
    assert 1 - len(counts) / counts.sum() == pytest.approx(0.640, abs=0.0005)  # blocks seen before: infinite cache
    assert np.diff(trace.hash_offsets).tolist() == (-(-trace.prompt_tokens // 512)).tolist()
