import json

import pytest

from sim.inputs.acceptance_models import Iid
from sim.inputs.arms import resolve_arms
from sim.inputs.errors import InputError
from sim.inputs.load import load_scenario

ALPHA = {"kind": "iid", "alpha": 0.5}
SCENARIO = {
    "calibration": {"kind": "affine", "target_fixed_ms": 10},
    "workload": {
        "requests": 20,
        "arrivals": {"kind": "closed", "concurrency": 4},
        "slices": [
            {"name": "a", "share": 0.5, "prompt_tokens": 5, "output_tokens": 9, "acceptance": ALPHA},
            {"name": "b", "share": 0.5, "prompt_tokens": 7, "output_tokens": 3, "acceptance": ALPHA},
        ],
    },
    "speculation": {"method": "eagle", "num_speculative_tokens": 3},
    "engine": {"max_num_seqs": 8, "block_size": 32},
}


def arms_of(tmp_path, **changes):
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps({**SCENARIO, **changes}))
    return {arm.name: arm for arm in resolve_arms(load_scenario(path))}


def test_baseline_and_speculative(tmp_path):
    arms = arms_of(tmp_path)
    assert list(arms) == ["baseline", "speculative"]
    assert arms["baseline"].speculation is None
    assert arms["speculative"].speculation.num_speculative_tokens == 3
    assert arms["baseline"].slices == arms["speculative"].slices


def test_without_speculation_there_is_the_baseline_alone_and_no_acceptance_is_needed(tmp_path):
    slices = [{"name": "a", "prompt_tokens": 5, "output_tokens": 9}]
    arms = arms_of(tmp_path, speculation=None, workload={**SCENARIO["workload"], "slices": slices})
    assert list(arms) == ["baseline"]


def test_no_draft_tokens_are_no_speculation(tmp_path):
    arms = arms_of(
        tmp_path,
        speculation={"method": "eagle", "num_speculative_tokens": 0},
        arms={"k2": {"speculation.num_speculative_tokens": 2}},
    )
    assert arms["speculative"].speculation is None
    assert arms["k2"].speculation.num_speculative_tokens == 2


def test_arms_override_the_speculative_arm(tmp_path):
    arms = arms_of(
        tmp_path,
        arms={
            "k5": {"speculation.num_speculative_tokens": 5, "engine": {"max_num_seqs": 4}},
            "cheap": {"calibration": {"kind": "affine", "target_fixed_ms": 5}},
            "all": {"acceptance": {"kind": "iid", "alpha": 0.9}},
            "one": {"acceptance": {"b": {"kind": "iid", "alpha": 0.1}}},
        },
    )
    assert list(arms) == ["baseline", "speculative", "k5", "cheap", "all", "one"]
    assert arms["k5"].speculation.num_speculative_tokens == 5
    assert arms["k5"].speculation.method == "eagle"
    assert (arms["k5"].engine.max_num_seqs, arms["k5"].engine.block_size) == (4, 32)
    assert arms["speculative"].engine.max_num_seqs == 8
    assert arms["cheap"].calibration.costs.target_fixed_ms == 5
    assert arms["speculative"].calibration.costs.target_fixed_ms == 10
    assert [part.acceptance for part in arms["all"].slices] == [Iid(kind="iid", alpha=0.9)] * 2
    assert [part.acceptance.alpha for part in arms["one"].slices] == [0.5, 0.1]


def test_lossy_arms_state_their_own_success_and_lengths(tmp_path):
    arms = arms_of(
        tmp_path,
        quality={"contract": "lossy"},
        arms={
            "baseline": {"success_rate": 0.9},
            "speculative": {"success_rate": {"a": 0.8, "b": 0.7}, "output_tokens": {"a": 12}},
            "k5": {"success_rate": 0.6},
        },
    )
    assert [part.success_rate for part in arms["baseline"].slices] == [0.9, 0.9]
    assert [part.success_rate for part in arms["speculative"].slices] == [0.8, 0.7]
    assert [part.success_rate for part in arms["k5"].slices] == [0.6, 0.6]
    assert [part.output_tokens for part in arms["speculative"].slices] == [12, 3]
    assert [part.output_tokens for part in arms["baseline"].slices] == [9, 3]


def test_acceptance_may_come_from_the_arm_that_drafts(tmp_path):
    slices = [{"name": "a", "prompt_tokens": 5, "output_tokens": 9}]
    changes = {
        "speculation": {"method": "eagle", "num_speculative_tokens": 0},
        "workload": {**SCENARIO["workload"], "slices": slices},
    }
    arm = {"speculation.num_speculative_tokens": 2}
    arms = arms_of(tmp_path, **changes, arms={"k2": {**arm, "acceptance": ALPHA}})
    assert arms["k2"].slices[0].acceptance.alpha == 0.5
    with pytest.raises(InputError, match=r"arms\.k2\.workload\.slices\.0\.acceptance: is missing"):
        arms_of(tmp_path, **changes, arms={"k2": arm})


def test_an_arm_repeats_no_mistake_of_the_scenario(tmp_path):
    with pytest.raises(InputError) as caught:
        arms_of(tmp_path, run={"seed": -1}, arms={"k5": {"speculation.num_speculative_tokens": 5}})
    assert len(caught.value.problems) == 1
