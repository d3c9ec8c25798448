"""Schedules, policies, look-ups, caches, priorities and pools that cannot be: exit 2, the key, the rule, a remedy."""

import re

import pytest
from test_broken_inputs import LINE, VALID

from sim.cli.main import main

SCHEDULE = "speculation.num_speculative_tokens_per_batch_size"
POOLS = "engine.pools"

BROKEN = [
    (f"{SCHEDULE}=[[2, 8, 3]]", f"{SCHEDULE}.0.0", "starts at 1"),
    (f"{SCHEDULE}=[[1, 8, 3], [8, 16, 1]]", f"{SCHEDULE}.1.0", "do not overlap"),
    (f"{SCHEDULE}=[[1, 8, 3], [20, 30, 1], [10, 12, 0]]", f"{SCHEDULE}.2.0", "sorted"),
    (f"{SCHEDULE}=[[1, 8, 4]]", f"{SCHEDULE}.0.2", "num_speculative_tokens, 3"),
    (f"{SCHEDULE}=[[1, 8, -1]]", f"{SCHEDULE}.0.2", ""),
    (f"{SCHEDULE}=[[9, 8, 3]]", f"{SCHEDULE}.0.1", "first <= last"),
    (f"{SCHEDULE}=[[1, 8]]", f"{SCHEDULE}.0", ""),
    (f"{SCHEDULE}=[]", SCHEDULE, ""),
    (f"{SCHEDULE}=4", SCHEDULE, ""),
    ("speculation.policy=good", "speculation.policy", "goodput"),
    ("speculation.prompt_lookup_max=4", "speculation.prompt_lookup_max", "method eagle looks nothing up"),
    ("speculation.method=medusa", "speculation.method", ""),
    ("engine.scheduling_policy=lifo", "engine.scheduling_policy", ""),
    ("workload.slices.0.priority=2", "workload.slices.0.priority", "fcfs"),
    ("workload.slices.0.shared_prefix_tokens=64", "workload.slices.0.shared_prefix_tokens", "prefix_caching"),
    (f"{POOLS}=[{{slices: [chat]}}]", POOLS, "no pool serves code"),
    (f"{POOLS}=[{{slices: [chat, cod]}}]", f"{POOLS}.0.slices.1", "did you mean 'code'"),
    (f"{POOLS}=[{{slices: [chat, code]}}, {{slices: [chat]}}]", f"{POOLS}.1.slices.0", "one pool"),
    (f"{POOLS}=[{{slices: [chat, code], num_speculative_tokens: 4}}]", f"{POOLS}.0.num_speculative_tokens", "own 3"),
]

TWO_SETS = [
    (
        (f"{SCHEDULE}=[[1, 8, 3]]", "speculation.policy=goodput"),
        "speculation.policy",
        "both choose the draft length",
    ),
    (
        ("engine.prefix_caching=true", "workload.slices.0.prefix_hit_tokens=10"),
        "workload.slices.0.prefix_hit_tokens",
        "shared_prefix_tokens",
    ),
    (("engine.style=fixed_batch", "engine.prefix_caching=true"), "engine.prefix_caching", "has none"),
    (("engine.style=fixed_batch", "engine.scheduling_policy=priority"), "engine.scheduling_policy", "has none"),
    (
        ("speculation.method=ngram", "speculation.prompt_lookup_min=5", "speculation.prompt_lookup_max=3"),
        "speculation.prompt_lookup_min",
        "min <= max",
    ),
    ((f"{POOLS}=[{{slices: [chat, code]}}]", "engine.replicas=2"), "engine.replicas", "replicas of their own"),
]

CASES = [((one,), field, words) for one, field, words in BROKEN] + TWO_SETS


@pytest.mark.parametrize(("sets", "field", "words"), CASES, ids=lambda value: re.sub(r"[^\w.]+", "-", str(value))[:60])
def test_is_told_and_nothing_is_printed(tmp_path, capsys, sets, field, words):
    path = tmp_path / "scenario.yaml"
    path.write_text(VALID)
    arguments = [argument for one in sets for argument in ("--set", one)]
    assert main(["run", str(path), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert all(LINE.fullmatch(line) for line in lines), lines
    assert any(f": {field}: " in line and words in line for line in lines), lines
