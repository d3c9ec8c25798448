"""The reader of acceptance logs: every form, the published means of recorded ones, and every way to be broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from sim.formats.acceptance_log import read_acceptance_log
from sim.inputs.errors import InputError

SHARED = Path(__file__).resolve().parents[3] / "shared"
ROUNDS = {"request_id": 7, "category": "math", "turn": 0, "k": 3, "accepted": [0, 3, 1]}
POSITIONS = {"request_id": 7, "k": 4, "accepted_at": [0, 2, 1, 0], "drafted_at": [0, 4, 4, 0]}


def written(tmp_path: Path, *lines: object, end: str = "\n") -> Path:
    path = tmp_path / "log.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes(end.join(texts).encode())
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_acceptance_log(path)
    return [str(problem).removeprefix(str(path)) for problem in caught.value.problems]


def test_rounds(tmp_path):
    log = read_acceptance_log(written(tmp_path, ROUNDS, {**ROUNDS, "category": "qa"}))
    assert (log.by_position, log.k, log.categories) == (False, 3, ["math", "qa"])
    (one,) = log.of_task("qa")
    assert one.accepted.tolist() == [0, 3, 1]
    assert one.drafted.tolist() == [3, 3, 3]
    assert one.output_tokens(by_position=False) == 1 + 1 + 4 + 2


def test_draft_lengths_that_vary_or_are_not_known(tmp_path):
    varied = read_acceptance_log(written(tmp_path, {**ROUNDS, "k": [2, 5, 1]}))
    assert varied.k is None
    assert varied.sequences[0].drafted.tolist() == [2, 5, 1]
    unknown = read_acceptance_log(written(tmp_path, {**ROUNDS, "k": None}, {"accepted": [1]}))
    assert unknown.k is None
    assert unknown.sequences[0].drafted is None
    assert read_acceptance_log(written(tmp_path, ROUNDS, {**ROUNDS, "k": 4})).k is None


def test_positions(tmp_path):
    log = read_acceptance_log(written(tmp_path, POSITIONS, {"accepted_at": [0, 9]}))
    assert (log.by_position, log.k) == (True, 9)
    assert log.sequences[0].drafted.tolist() == [0, 4, 4, 0]
    assert log.sequences[1].drafted is None
    assert log.sequences[0].output_tokens(by_position=True) == 4


@pytest.mark.parametrize("pack", [lambda text: text, gzip.compress])
def test_crlf_and_gzip(tmp_path, pack):
    path = tmp_path / "log.jsonl"
    path.write_bytes(pack(f"{json.dumps(ROUNDS)}\r\n{json.dumps(ROUNDS)}\r\n\r\n".encode()))
    assert len(read_acceptance_log(path).sequences) == 2


def test_responses_of_an_engine():
    path = SHARED / "formats" / "vllm_response_metrics_detailed.json"
    if not path.exists():
        pytest.skip("../shared/formats is not there")
    log = read_acceptance_log(path)
    assert log.k == 3
    (one,) = log.sequences
    assert one.request_id == "cmpl-demo"
    assert one.accepted.tolist() == [3, 1, 0, 2, 1]
    assert one.output_tokens(by_position=False) == 13  # its own usage says 12: the last round is cut


@pytest.mark.parametrize(
    ("name", "sequences", "per_round"),
    [
        ("eagle1_tree_vicuna7b_specbench", 560, 3.59),
        ("eagle_chain_k6_llama3_8b_specbench", 560, 2.16),
        ("sps68m_heuristic_vicuna7b_specbench", 560, 2.28),
        ("sps68m_confidence_k20_vicuna7b_specbench", 560, 2.49),
        ("medusa_tree_vicuna7b_mtbench", 160, 2.52),
        ("hydra_tree_vicuna7b_productrank", 50, 3.00),
    ],
)
def test_recorded_logs(name, sequences, per_round):
    path = SHARED / "data" / "acceptance" / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("../shared/data is not there")
    log = read_acceptance_log(path)
    assert len(log.sequences) == sequences
    accepted = np.concatenate([one.accepted[:-1] for one in log.sequences])
    assert 1 + accepted.mean() == pytest.approx(per_round, abs=0.005)


@pytest.mark.parametrize(
    ("line", "place", "says"),
    [
        ("{", ":1:2: line", "is no JSON"),
        ('{"accepted": [1, }', ":1:18: line", "is no JSON"),
        ("[1, 2]", ":1:1: line", "no object"),
        ('{"k": 3}', ":1:1: accepted", "is missing"),
        ('{"k": 3, "accepted": []}', ":1:10: accepted", "is empty"),
        ('{"k": 3, "accepted": [1, -1]}', ":1:10: accepted", "whole numbers from 0 to 255"),
        ('{"k": 3, "accepted": [1, true]}', ":1:10: accepted", "whole numbers"),
        ('{"k": 3, "accepted": [1, 2.0]}', ":1:10: accepted", "whole numbers"),
        ('{"k": 3, "accepted": [1, NaN]}', ":1:10: accepted", "whole numbers"),
        ('{"k": 3, "accepted": [1, 4]}', ":1:2: k", "entry 2: 4 of 3 drafts are accepted"),
        ('{"k": [3], "accepted": [1, 2]}', ":1:2: k", "has 1 entries for 2"),
        ('{"k": "3", "accepted": [1, 2]}', ":1:2: k", "is no draft length"),
        ('{"k": 0, "accepted": [0]}', ":1:2: k", "0 is no draft length"),
        ('{"k": true, "accepted": [0]}', ":1:2: k", "is no draft length"),
        ('{"k": 2, "accepted_at": [0, 3]}', ":1:2: k", "2 with a run of 3"),
        ('{"accepted_at": [0, 3], "drafted_at": [9, 2]}', ":1:25: drafted_at", "entry 2: 3 of 2"),
        ('{"accepted_at": [0, 3], "drafted_at": "all"}', ":1:25: drafted_at", "whole numbers"),
        ("[" * 100_000, ":1:1: line", "is no JSON"),
        ('{"accepted": [' + "9" * 5000 + "]}", ":1:1: line", "is no JSON"),
    ],
)
def test_broken_lines(tmp_path, line, place, says):
    (problem,) = problems(written(tmp_path, line))
    assert problem.startswith(place)
    assert says in problem


def test_an_empty_file(tmp_path):
    (problem,) = problems(written(tmp_path))
    assert "holds no sequence" in problem


def test_rounds_and_positions_do_not_mix(tmp_path):
    (problem,) = problems(written(tmp_path, ROUNDS, POSITIONS))
    assert problem.startswith(":2:")
    assert "write two files" in problem


def test_many_problems_are_counted(tmp_path):
    found = problems(written(tmp_path, *["{}"] * 50))
    assert len(found) == 21
    assert "30 more problems" in found[-1]


def test_every_broken_line_is_told(tmp_path):
    found = problems(written(tmp_path, ROUNDS, "", "[]", {"k": 1, "accepted": [2]}, ROUNDS))
    assert [problem[:3] for problem in found] == [":2:", ":3:", ":4:"]
