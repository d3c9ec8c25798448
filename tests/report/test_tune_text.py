"""The first line of a tuning answer, and its flags as lines to paste."""

import pytest

from sim.report.tune_flags_text import flag_lines
from sim.report.tune_text import recommendation_sentence

RATIO = {"ratio": 1.25, "low": 1.2, "high": 1.3, "verdict": "better"}
POOLS = [
    {"slices": ["code", "chat"], "replicas": 3, "num_speculative_tokens": 4},
    {"slices": ["poetry"], "replicas": 1, "num_speculative_tokens": 0},
]


def document(kind, objective="output_throughput", drafts=3, ratio=RATIO):
    given = {"kind": kind, "num_speculative_tokens": drafts, "ratio_to_off": ratio}
    given |= {"schedule": [[1, 8, 3], [9, 64, 1]], "pools": POOLS}
    return {"recommendation": given, "own_traffic": {"objective": objective}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (document("off"), "no speculation"),
        (document("fixed"), "Recommended: 3 draft tokens, 1.25x [1.20, 1.30] the output throughput"),
        (document("fixed", drafts=1), "Recommended: 1 draft token, "),
        (document("fixed", "mean_e2el_ms"), "the mean E2E latency of no speculation"),
        (document("schedule"), "the schedule 1-8: 3, 9-64: 1, 1.25x"),
        (document("pools"), "4 draft tokens on 3 replicas for code, chat; 0 draft tokens on 1 replica for poetry"),
        (document("fixed", ratio={**RATIO, "verdict": "no_difference_shown"}), "1.25x [1.20, 1.30] ns"),
    ],
)
def test_what_to_set_stands_first(given, says):
    assert says in recommendation_sentence(given)


def test_flags_are_lines_to_paste_and_notes_are_comments():
    engine = {"engine": "vLLM", "version": "1", "text": "--a\n--b", "notes": ["mind this"]}
    lines = flag_lines([{"label": "schedule", "recommended": False, "engines": [engine]}])
    assert lines == ["Flags, not recommended: schedule", "  # vLLM 1", "  # mind this", "  --a", "  --b", ""]
