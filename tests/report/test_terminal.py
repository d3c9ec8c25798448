"""The first screen: sentence, tables, caveats; 80 columns; plain text in a pipe."""

from __future__ import annotations

import io

import pytest
from documents import arm, document, entry, paying
from rich.console import Console

from sim.report.sentence import answer_sentence
from sim.report.terminal import caveats, print_answer

COMPARED = {
    "speculative": {
        "mean_tpot_ms": entry(0.617, "better", 0.61, 0.624),
        "output_throughput": entry(1.6, "no_difference_shown", 0.99, 2.5),
        "mean_ttft_ms": entry(None),
    }
}


def screen(told, terminal=False, width=80):
    file = io.StringIO()
    print_answer(told, Console(file=file, force_terminal=terminal, width=width, highlight=False, _environ={}))
    return file.getvalue()


def line(text, label):
    """The one line that starts with the label, its columns separated by single spaces."""
    (found,) = [" ".join(line.split()) for line in text.splitlines() if line.startswith(label)]
    return found


def test_sentence_first_then_tables_then_caveats():
    told = paying(comparison=COMPARED, replications=5, warnings=["draft memory not modelled"])
    lines = screen(told).splitlines()
    assert lines[0] == answer_sentence(told)
    titles = ["Results", "Share of a request's time", "What each draft token of speculative", "warning: draft memory"]
    places = [next(i for i, text in enumerate(lines) if text.startswith(title)) for title in titles]
    assert places == sorted(places)
    assert lines[-2] == "calibration: inline (affine, held-out error not stated)"
    assert lines[-1] == "specsim 0.1.0, seed 1, replications 5"


def test_values_ratios_and_verdicts_stand_in_their_rows():
    text = screen(paying(comparison=COMPARED, replications=5))
    assert line(text, "TPOT mean") == "TPOT mean, ms 6.10 3.77 0.617x [0.610, 0.624]"
    assert line(text, "output throughput") == "output throughput, tok/s 650 1,050 1.60x [0.990, 2.50] ns"
    assert line(text, "TTFT mean") == "TTFT mean, ms 50.0 50.0"
    assert line(text, "acceptance length") == "acceptance length - 2.90"
    assert line(text, "drafting") == "drafting 0 % 21 %"
    assert line(text, "2 ") == "2 0.100 1.50 0.500 no"
    assert "ns: no difference shown" in text


def test_rows_without_a_subject_are_left_out():
    text = screen(paying())
    for absent in ("$ per", "failed", "goodput", "overloaded", "ns:"):
        assert absent not in text


def test_costs_failures_and_overload_have_rows_where_they_happen():
    told = paying()
    told["arms"]["speculative"]["failed"] = 3
    told["arms"]["speculative"]["cost"]["usd_per_successful_task"] = 0.008
    told["arms"]["baseline"]["overload"] = {"detected": True, "carried_request_rate": 4.3}
    text = screen(told)
    assert line(text, "failed") == "failed requests 0 3"
    assert line(text, "$ per successful") == "$ per successful task - 0.00800"
    assert line(text, "overloaded") == "overloaded yes no"
    assert line(text, "carried rate") == "carried rate, requests/s 4.30 -"


@pytest.mark.parametrize("arms", [2, 3, 6, 11])
def test_every_arm_is_shown_within_80_columns(arms):
    told = paying(comparison=COMPARED)
    for number in range(arms - 2):
        told["arms"][f"k{number}"] = arm(True, output_throughput=1_000.0 + number)
        told["comparison"][f"k{number}"] = {"output_throughput": entry(1.5 + number / 100, "better", 1.4, 1.6)}
    text = screen(told)
    tables = text.split("\nResults\n", 1)[1].split("\ncalibration:")[0]
    assert max(map(len, tables.splitlines())) <= 80
    for number in range(arms - 2):
        assert f"{1000 + number:,}" in text
        assert f"{1.5 + number / 100:.2f}x [1.40, 1.60]" in text


def test_a_pipe_gets_plain_text_and_a_terminal_wrapped_text():
    told = paying(comparison=COMPARED)
    assert "\x1b" not in screen(told)
    on_terminal = screen(told, terminal=True)
    assert "\x1b[1m" in on_terminal
    assert answer_sentence(told) not in on_terminal


def test_no_color_is_respected(monkeypatch):
    file = io.StringIO()
    print_answer(paying(), Console(file=file, force_terminal=True, _environ={"NO_COLOR": "1", "TERM": "xterm"}))
    assert "\x1b[3" not in file.getvalue()


def test_names_are_not_markup():
    told = paying()
    told["arms"]["[red]k5"] = arm(True)
    assert "[red]k5" in screen(told)


def test_baseline_alone_has_no_ratio():
    text = screen(document({"baseline": arm()}))
    assert "95 %]" not in text
    assert "draft token" not in text


def test_calibration_error_is_told():
    told = paying()
    told["calibration"] = {"name": "h100", "kind": "published", "heldout": {"median_percent": 3.1, "p95_percent": 8.0}}
    assert "calibration: h100 (published, held-out error: median 3.10 %, p95 8.00 %)" in caveats(told)
    told["calibration"]["heldout"]["p95_percent"] = None
    assert "calibration: h100 (published, held-out error: median 3.10 %)" in caveats(told)


def test_graph_modes_are_shown_where_the_calibration_knows_them():
    from sim.report.table_rows import time_share_rows

    shares = dict.fromkeys(
        ("waiting", "prefill", "drafting", "verification", "sampling", "kv_update", "host", "prefill_interference"),
        0.125,
    )
    plain = {"time_share": shares, "graph_mode_share": None}
    known = {"time_share": shares, "graph_mode_share": {"full": 0.25, "piecewise": 0.0, "eager": 0.75}}
    assert len(time_share_rows({"a": plain})) == 8
    rows = dict(time_share_rows({"a": plain, "b": known}))
    assert rows["eager steps"] == ["-", "75 %"]
    assert rows["steps in full graphs"] == ["-", "25 %"]
