"""Which slices gain and lose, in the sentence and in the tables."""

from __future__ import annotations

import io

import pytest
from documents import arm, document, entry, paying
from rich.console import Console

from sim.report.sentence import answer_sentence
from sim.report.slice_answer import slices_sentence
from sim.report.terminal import MOST_SLICES, print_answer


def mixed(tpot_ms, share=None, verdict="not_tested", e2el_ms=None):
    """A document with slices; tpot_ms: {name: (baseline, speculative)}."""
    told = paying()
    for name, (before, after) in tpot_ms.items():
        part = (share or {}).get(name, 1 / len(tpot_ms))
        for which, value in (("baseline", before), ("speculative", after)):
            one = arm(which == "speculative", mean_tpot_ms=value, mean_e2el_ms=100.0 * value)
            if e2el_ms:
                one["mean_e2el_ms"] = e2el_ms[name][which == "speculative"]
            one |= {"request_share": part, "gpu_time_share": part, "slo_attainment": None}
            told["arms"][which].setdefault("slices", {})[name] = one
        compared = told["comparison"].setdefault("speculative", {}).setdefault("slices", {})
        compared[name] = {"mean_tpot_ms": entry(after / before, verdict, after / before, after / before)}
        compared[name]["mean_e2el_ms"] = entry(after / before, verdict)
    return told


def screen(told, width=200):
    file = io.StringIO()
    print_answer(told, Console(file=file, width=width, highlight=False, _environ={}))
    return file.getvalue()


def test_the_losing_slice_is_named_in_the_headline():
    sentence = answer_sentence(mixed({"code": (10.0, 5.0), "translation": (10.0, 12.0)}))
    assert sentence.startswith("Speculation pays: ")
    assert "Slice translation loses from speculation: 1.20x slower TPOT (10.0 -> 12.0 ms)." in sentence
    assert "Slice code gains from speculation: 2.00x faster TPOT (10.0 -> 5.00 ms)." in sentence


@pytest.mark.parametrize("after", [5.0, 15.0])
def test_slices_that_agree_need_no_sentence(after):
    assert slices_sentence(mixed({"code": (10.0, after), "chat": (10.0, after)})) == ""


def test_one_slice_has_no_sentence_and_no_table():
    told = document({"baseline": arm(), "speculative": arm(True)}, {"speculative": {"mean_tpot_ms": entry(1.0)}})
    assert slices_sentence(told) == ""
    assert "Slice" not in screen(told)


def test_a_tested_nothing_is_no_loss():
    told = mixed({"code": (10.0, 5.0), "chat": (10.0, 11.0)}, verdict="no_difference_shown")
    assert slices_sentence(told) == ""
    assert "Slice chat, 50 % of the requests: no difference shown" in screen(told)


def test_most_requests_first_and_the_rest_are_counted():
    tpot = {f"s{i}": (10.0, 12.0 + i) for i in range(5)} | {"code": (10.0, 5.0)}
    share = {f"s{i}": 0.05 * (i + 1) for i in range(5)} | {"code": 0.25}
    assert slices_sentence(mixed(tpot, share)).startswith(
        "Slices that lose from speculation: s4, 1.60x slower TPOT (10.0 -> 16.0 ms); "
        "s3, 1.50x slower TPOT (10.0 -> 15.0 ms); s2, 1.40x slower TPOT (10.0 -> 14.0 ms); and 2 more."
    )


def test_faster_tokens_and_later_ends_are_a_trade():
    told = mixed({"code": (10.0, 5.0), "chat": (10.0, 5.0)}, e2el_ms={"code": (900.0, 500.0), "chat": (900.0, 990.0)})
    assert "Slice chat, 50 % of the requests: a trade with speculation, 1.10x longer E2E latency" in screen(told)


def test_each_slice_has_its_table():
    text = screen(mixed({"code": (10.0, 5.0), "translation": (10.0, 12.0)}, verdict="worse"))
    titles = [line for line in text.splitlines() if line.startswith("Slice ")]
    assert titles[0].startswith("Slice code, 50 % of the requests: ")
    assert titles[1].startswith("Slice translation, 50 % of the requests: loses from speculation, 1.20x slower TPOT")
    rows = [" ".join(line.split()) for line in text.splitlines() if line.startswith("TPOT mean")]
    assert rows[1:] == [
        "TPOT mean, ms 10.0 5.00 0.500x [0.500, 0.500]",
        "TPOT mean, ms 10.0 12.0 1.20x [1.20, 1.20]",
    ]


def test_tables_of_many_slices_stop():
    told = mixed({f"s{i}": (10.0, 5.0) for i in range(MOST_SLICES + 4)})
    text = screen(told)
    assert sum(line.startswith("Slice ") for line in text.splitlines()) == MOST_SLICES
    assert "4 more slices in the JSON result" in text
