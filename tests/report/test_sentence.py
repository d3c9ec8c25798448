"""The one-sentence answer says what happened, why, and how sure it is."""

from __future__ import annotations

import pytest
from documents import PHASES, arm, document, entry, paying
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.report.reason import round_reason
from sim.report.sentence import answer_sentence

NOT_TESTED = " (one replication: not tested)"


def slower(shares, **values):
    plain = arm(mean_tpot_ms=10.0, mean_e2el_ms=2000.0, output_throughput=100.0)
    worse = {"mean_tpot_ms": 12.0, "mean_e2el_ms": 2400.0, "output_throughput": 80.0} | values
    return document({"baseline": plain, "speculative": arm(True, shares, **worse)})


def little_kv_room(**values):
    plain = {"mean_tpot_ms": 17.4, "mean_ttft_ms": 154_000.0, "mean_e2el_ms": 225_000.0, "output_throughput": 1042.0}
    worse = {"mean_tpot_ms": 9.38, "mean_ttft_ms": 214_000.0, "mean_e2el_ms": 252_000.0, "output_throughput": 881.0}
    fewer = {"num_gpu_blocks": 6000, "mean_running": 18.0} | values
    return document(
        {
            "baseline": arm(False, {"waiting": 0.6}, num_gpu_blocks=10_000, mean_running=30.0, **plain),
            "speculative": arm(True, {"waiting": 0.72, "drafting": 0.05}, **worse, **fewer),
        }
    )


def test_it_pays_by_tpot_and_throughput_for_a_reason():
    assert answer_sentence(paying()) == (
        "Speculation pays: 1.62x faster TPOT (6.10 -> 3.77 ms), 1.62x higher output throughput (650 -> 1,050 tok/s), "
        "because a round commits 2.90 tokens for 1.79x the time of a plain step; drafting takes 21 % of the time"
        f"{NOT_TESTED}."
    )


def test_a_slow_draft_does_not_pay_and_drafting_is_why():
    sentence = answer_sentence(slower({"drafting": 0.62}))
    assert sentence.startswith("Speculation does not pay: 1.20x slower TPOT (10.0 -> 12.0 ms), 1.25x lower output")
    assert "drafting takes 62 % of the time" in sentence
    assert "verif" not in sentence


def test_expensive_verification_loses_and_compute_is_why():
    sentence = answer_sentence(slower({"drafting": 0.1}))
    assert sentence.startswith("Speculation loses: 1.20x slower TPOT")
    # 0.9 * 2400 ms * 2.9 tokens a round against 2000 ms * 1
    assert "verification is compute-bound: verifying 4 positions takes 3.13x the target time of one" in sentence


def test_verification_in_a_larger_batch_is_not_called_compute_bound():
    sentence = answer_sentence(slower({"drafting": 0.1}, mean_running=40.0))
    assert "compute-bound" not in sentence
    assert "3.13x the target time of one, at 40.0 running requests instead of 4.00" in sentence


@pytest.mark.parametrize(
    ("phase", "says"),
    [("prefill_interference", "the prefill of others takes 70 %"), ("host", "sampling, KV update and host take 70 %")],
)
def test_other_burdens_are_named(phase, says):
    assert says in answer_sentence(slower({phase: 0.7}))


def test_draft_memory_explains_the_trade():
    assert answer_sentence(little_kv_room()) == (
        "Speculation is a trade: 1.86x faster TPOT (17.4 -> 9.38 ms), but 1.18x lower output throughput "
        "(1,042 -> 881 tok/s) and 1.39x longer TTFT (154 -> 214 s), because draft memory leaves fewer KV blocks "
        "(10,000 -> 6,000), so 18.0 requests run instead of 30.0 and the rest queue (waiting takes 72 % of the time, "
        f"60 % without){NOT_TESTED}."
    )


@pytest.mark.parametrize(
    "same", [{"num_gpu_blocks": 10_000}, {"mean_running": 30.0}, {"num_gpu_blocks": None}], ids=str
)
def test_draft_memory_is_not_blamed_where_it_did_nothing(same):
    sentence = answer_sentence(little_kv_room(**same, mean_ttft_queue_ms=60_000.0))
    assert "draft memory" not in sentence
    assert "because most of the added TTFT is waiting for a batch slot (+59,990 ms)" in sentence


def test_verdicts_outrank_values():
    comparison = {
        "mean_tpot_ms": entry(0.62, "no_difference_shown", 0.3, 1.1),
        "output_throughput": entry(1.6, "no_difference_shown", 0.8, 2.4),
        "mean_e2el_ms": entry(0.62, "no_difference_shown", 0.3, 1.1),
    }
    sentence = answer_sentence(paying(comparison={"speculative": comparison}, replications=5))
    assert sentence.startswith(
        "Speculation does not pay: no difference shown in TPOT (6.10 -> 3.77 ms), "
        "no difference shown in output throughput (650 -> 1,050 tok/s), because"
    )
    assert "not tested" not in sentence


def test_several_untested_replications_are_not_called_one():
    assert answer_sentence(paying(replications=5)).endswith(" (not tested).")


def test_a_certain_but_tiny_difference_decides_nothing():
    arms = {"baseline": arm(mean_tpot_ms=10.0), "speculative": arm(True, mean_tpot_ms=9.95)}
    compared = {"speculative": {"mean_tpot_ms": entry(0.995, "better", 0.994, 0.996)}}
    sentence = answer_sentence(document(arms, compared, replications=5))
    assert sentence.startswith("Speculation does not pay: no difference shown in TPOT")


def test_a_longer_ttft_is_told_beside_the_gain():
    told = paying()
    told["arms"]["speculative"]["mean_ttft_ms"] = 75.0
    assert f"; against that, 1.50x longer TTFT (50.0 -> 75.0 ms){NOT_TESTED}." in answer_sentence(told)


def test_a_trade_without_a_longer_ttft_is_explained_by_the_round():
    told = paying()
    told["arms"]["speculative"]["output_throughput"] = 325.0
    told["arms"]["speculative"]["mean_ttft_queue_ms"] = 11.0
    assert "but 2.00x lower output throughput (650 -> 325 tok/s), because a round commits" in answer_sentence(told)


def test_cost_per_successful_task_speaks_where_it_is_priced():
    told = paying()
    told["arms"]["baseline"]["cost"]["usd_per_successful_task"] = 0.012
    told["arms"]["speculative"]["cost"]["usd_per_successful_task"] = 0.008
    assert "1.50x lower cost per successful task ($0.0120 -> $0.00800)" in answer_sentence(told)
    told["arms"]["speculative"]["cost"]["usd_per_successful_task"] = 0.024
    assert answer_sentence(told).startswith("Speculation is a trade")


def test_overload_is_named_with_the_carried_rate():
    told = paying(arrivals={"kind": "poisson", "rate": 20.0})
    told["arms"]["baseline"]["overload"] = {"detected": True, "carried_request_rate": 4.3}
    assert "Overload in baseline, the queue of arrivals of 20.0 requests/s" in answer_sentence(told)
    assert answer_sentence(told).endswith("baseline carries 4.30 requests/s, speculative keeps up.")
    told["arms"]["speculative"]["overload"] = {"detected": True, "carried_request_rate": 6.1}
    assert "Overload in every arm" in answer_sentence(told)
    assert answer_sentence(told).endswith("baseline carries 4.30 requests/s, speculative carries 6.10 requests/s.")


def test_several_arms_name_the_best():
    told = paying()
    told["arms"]["k5"] = arm(True, mean_tpot_ms=3.0, output_throughput=900.0)
    assert answer_sentence(told).endswith(
        "Of 3 arms: lowest TPOT in k5 (3.00 ms), highest output throughput in speculative (1,050 tok/s)."
    )


def test_without_speculation_there_is_nothing_to_compare():
    assert answer_sentence(document({"baseline": arm()})) == (
        "Without speculation: 400 output tok/s, TPOT 10.0 ms, TTFT 50.0 ms, with 4.00 requests running."
    )
    both = document({"baseline": arm(), "speculative": arm()})
    assert answer_sentence(both) == "No speculation is configured: both arms are the same."


def test_no_completed_request_gives_no_answer():
    assert answer_sentence(document({"baseline": arm(completed=0)})) == "No request completed."
    told = document({"baseline": arm(), "speculative": arm(True, completed=0)})
    assert answer_sentence(told) == "No answer: no request completed in arm speculative."


def test_one_token_outputs_are_judged_without_tpot():
    missing = dict.fromkeys(("mean_tpot_ms", "committed_tokens_per_round"))
    told = document({"baseline": arm(**missing), "speculative": arm(True, mean_e2el_ms=4000.0, **missing)})
    assert "1.96x longer E2E latency (2,040 -> 4,000 ms)" in answer_sentence(told)


MAYBE = st.none() | st.floats(0, 1e9)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_numbers_give_a_sentence_without_nan(data):
    def drawn(speculative):
        shares = {phase: data.draw(st.floats(0, 1)) for phase in PHASES}
        names = ("mean_tpot_ms", "mean_ttft_ms", "mean_e2el_ms", "output_throughput", "committed_tokens_per_round",
                 "num_gpu_blocks", "mean_running", "mean_ttft_queue_ms")  # fmt: skip
        return arm(speculative, time_share=shares, **{name: data.draw(MAYBE) for name in names})

    told = document({"baseline": drawn(False), "speculative": drawn(True)})
    sentence = answer_sentence(told)
    assert sentence.endswith(".")
    assert "nan" not in sentence
    assert "None" not in sentence


def test_two_vanishing_numbers_are_no_reason():
    tiny = {"mean_tpot_ms": 1e-200, "committed_tokens_per_round": 1e-200}
    assert round_reason(tiny, {"mean_tpot_ms": 1.0, "committed_tokens_per_round": 2.0}) is None
