"""Exact results of renewal and queueing theory, each a complete scenario run as it stands through `specsim run`."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from sim.cli.main import main

ORACLES = json.loads((Path(__file__).parent / "oracles.json").read_text())


def test_all_twenty_are_there():
    assert len(ORACLES) == 20


def _value(arm, field):
    if " / " in field:
        numerator, denominator = field.split(" / ")
        return arm[numerator] / arm[denominator]
    return arm[field]


# Rounds know nothing of batches, a lone user nothing of others: no style may change these.
ANY_STYLE = (
    "tokens per round, a=0.7 k=3",
    "rounds to commit 100 tokens, a=0.8 k=5",
    "closed loop with a serial draft",
    "first token on an idle engine",
)


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle["id"])
def test_oracle(oracle, tmp_path, capsys):
    _check(oracle, tmp_path, capsys)


@pytest.mark.parametrize("name", ANY_STYLE)
def test_oracle_in_the_style_of_sglang(name, tmp_path, capsys):
    oracle = next(oracle for oracle in ORACLES if oracle["id"] == name)
    _check(oracle, tmp_path, capsys, "--set", "engine.style=sglang")


def _check(oracle, tmp_path, capsys, *more):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(oracle["scenario"]))
    arguments = ["run", str(path), "--json", *more]
    if "per_request_rounds" in oracle:
        arguments += ["--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    value = _value(document["arms"][oracle["arm"]], oracle["field"])
    assert value == pytest.approx(oracle["value"], rel=oracle["rel_tol"])
    if "per_request_rounds" in oracle:
        _check_rounds(tmp_path / "out" / f"requests-{oracle['arm']}.csv", oracle)


def _check_rounds(path, oracle):
    """The spread of rounds over requests, not only their mean."""
    with path.open() as file:
        rounds = np.array([int(row["rounds"]) for row in csv.DictReader(file)])
    exact = oracle["per_request_rounds"]
    assert rounds.var() == pytest.approx(exact["variance"], rel=0.04)
    assert np.percentile(rounds, 95, method="inverted_cdf") == exact["p95"]
