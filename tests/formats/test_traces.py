"""The Azure trace reader: the published numbers of both traces, and every way a file can be broken."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import numpy as np
import pytest

from sim.formats.traces import read_trace
from sim.inputs.errors import InputError

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROWS = (
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50.9951690,396,109",
    "2023-11-16 18:15:51.2224670,879,55",
)


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "trace.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "rows", "prompt", "prompt_mean", "output", "output_mean", "rate_per_s", "gap_cv"),
    [
        ("conv", 19_366, (207, 1020, 2734, 4142), 1155, (54, 129, 424, 601), 211, 5.53, 1.09),
        ("code", 8_819, (147, 1469, 5187, 7436), 2048, (7, 13, 55, 251), 28, 2.57, 13.15),
    ],
)
def test_published_statistics(name, rows, prompt, prompt_mean, output, output_mean, rate_per_s, gap_cv):
    path = TRACES / f"AzureLLMInferenceTrace_{name}.csv"
    if not path.exists():
        pytest.skip("the Azure traces are not next to the repository")
    trace = read_trace(path)
    gaps_ms = np.diff(trace.arrival_ms)
    quantiles = [10, 50, 90, 99]
    assert len(trace) == rows
    assert trace.arrival_ms[0] == 0
    assert np.percentile(trace.prompt_tokens, quantiles) == pytest.approx(prompt, abs=1)
    assert np.percentile(trace.output_tokens, quantiles) == pytest.approx(output, abs=1)
    assert trace.prompt_tokens.mean() == pytest.approx(prompt_mean, abs=0.6)
    assert trace.output_tokens.mean() == pytest.approx(output_mean, abs=0.6)
    assert 1000 / gaps_ms.mean() == pytest.approx(rate_per_s, abs=0.005)
    assert gaps_ms.std() / gaps_ms.mean() == pytest.approx(gap_cv, abs=0.005)


@pytest.mark.parametrize(
    "content",
    [
        "\r\n".join((HEADER, *ROWS)).encode(),
        "\n".join((HEADER, *ROWS, "", "")).encode(),
        b"\xef\xbb\xbf" + "\n".join((HEADER, *ROWS)).encode(),
        gzip.compress("\r\n".join((HEADER, *ROWS)).encode()),
        "\n".join((HEADER, *(row.replace(" ", "T", 1).replace(",", "Z,", 1) for row in ROWS))).encode(),
        "\n".join((HEADER, *(row.replace(",", "+00:00,", 1) for row in ROWS))).encode(),
        "\n".join(
            ("Region,GeneratedTokens,ContextTokens,TIMESTAMP", *("x," + ",".join(row.split(",")[::-1]) for row in ROWS))
        ).encode(),
    ],
    ids=["crlf", "lf and blank end", "byte order mark", "gzip", "iso", "offset of 0", "other column order"],
)
def test_every_spelling_reads_alike(tmp_path, content):
    trace = read_trace(written(tmp_path, content))
    assert trace.arrival_ms.tolist() == [0.0, 4314.579, 4541.877]
    assert trace.prompt_tokens.tolist() == [374, 396, 879]
    assert trace.output_tokens.tolist() == [44, 109, 55]


def test_the_time_zone_of_the_machine_is_ignored(tmp_path, monkeypatch):
    # New York left summer time at 06:00 UTC on 5 November 2023: local times would jump by an hour.
    path = written(tmp_path, f"{HEADER}\n2023-11-05 05:59:59.5,1,1\n2023-11-05 06:00:00.5,1,1\n")
    monkeypatch.setitem(os.environ, "TZ", "America/New_York")
    time.tzset()
    try:
        assert read_trace(path).arrival_ms.tolist() == [0.0, 1000.0]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_changed_file_is_read_again(tmp_path):
    path = written(tmp_path, "\n".join((HEADER, *ROWS)))
    assert read_trace(path) is read_trace(path)
    written(tmp_path, "\n".join((HEADER, *ROWS[:2])))
    assert len(read_trace(path)) == 2


def test_columns_cannot_be_changed_by_a_reader(tmp_path):
    trace = read_trace(written(tmp_path, "\n".join((HEADER, *ROWS))))
    with pytest.raises(ValueError, match="read-only"):
        trace.arrival_ms[0] = 1.0


@pytest.mark.parametrize(
    ("content", "places"),
    [
        ("", [(1, 1, "file is empty")]),
        ("TIMESTAMP,ContextTokens\n", [(1, 1, "no known trace format")]),
        (HEADER, [(1, 1, "no rows")]),
        (f"{HEADER}\n{ROWS[0]}\n2023-11-16 18:15", [(3, 17, "cut off")]),
        (f"{HEADER}\n{ROWS[0]}\n2023-11-16 18:15:50.9951690,396,", [(3, 33, "GeneratedTokens: ''")]),
        (f"{HEADER}\n{ROWS[0]},7\n{ROWS[1]}", [(2, 37, "4 fields")]),
        (f"{HEADER}\n{ROWS[0]}\n\n{ROWS[1]}", [(3, 1, "1 fields")]),
        (f"{HEADER}\nyesterday,1,1\n", [(2, 1, "TIMESTAMP: 'yesterday'")]),
        (f"{HEADER}\n2023-02-30 00:00:00,1,1\n", [(2, 1, "not a date")]),
        (f"{HEADER}\n2023-11-16 18:15:46+02:00,1,1\n", [(2, 1, "TIMESTAMP")]),
        (f"{HEADER}\n0001-01-01 00:00:00,1,1\n", [(2, 1, "TIMESTAMP")]),
        (f"{HEADER}\n{ROWS[0]}\n{ROWS[2]}\n{ROWS[1]}", [(4, 1, "earlier than 2023-11-16 18:15:51.2224670 on line 3")]),
        (f"{HEADER}\n2023-11-16 18:15:46,0,5\n", [(2, 21, "ContextTokens: '0'")]),
        (f"{HEADER}\n2023-11-16 18:15:46,5,0\n", [(2, 23, "GeneratedTokens: '0'")]),
        (f"{HEADER}\n2023-11-16 18:15:46,-5,5\n", [(2, 21, "ContextTokens: '-5'")]),
        (f"{HEADER}\n2023-11-16 18:15:46,1.5,²\n", [(2, 21, "'1.5'"), (2, 25, "GeneratedTokens")]),
        (f"{HEADER}\n2023-11-16 18:15:46,{'9' * 5000},5\n", [(2, 21, "ContextTokens")]),
        (f"{HEADER}\nx,1,1\n{ROWS[0]}\n2023-11-16 18:15:50,y,1", [(2, 1, "'x'"), (4, 21, "'y'")]),
        (HEADER.encode() + b"\n\xff\xfe,1,1\n", [(2, 1, "UTF-8")]),
        (b"\x1f\x8b\x08damaged", [(1, 1, "damaged gzip")]),
        (gzip.compress(("\n".join((HEADER, *ROWS)) * 99).encode())[:-9], [(1, 1, "damaged gzip")]),
    ],
)
def test_broken_files_name_the_place(tmp_path, content, places):
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    found = [(problem.line, problem.column, str(problem)) for problem in caught.value.problems]
    assert [place[:2] for place in found] == [place[:2] for place in places]
    for (_, _, text), (line, column, words) in zip(found, places, strict=True):
        assert text.startswith(f"{path}:{line}:{column}: ")
        assert words in text


def test_a_stated_format_needs_its_columns(tmp_path):
    with pytest.raises(InputError, match=r"trace.csv:1:1: ContextTokens: .*lacks ContextTokens, GeneratedTokens"):
        read_trace(written(tmp_path, "TIMESTAMP,x\n1,2\n"), "azure")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.csv"):
        read_trace(tmp_path / "nowhere.csv")


def test_of_many_problems_the_first_are_told(tmp_path):
    path = written(tmp_path, HEADER + "\nx,1,1" * 500)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert [problem.line for problem in caught.value.problems] == list(range(2, 23))
    assert "480 more problems" in str(caught.value.problems[-1])
