"""Broken calibrations: tables, rounds, units, memory and models, told as every other broken input."""

import json

import pytest
from test_broken_inputs import (
    CALIBRATION,
    COSTS,
    Broken,
    assert_told,
    calibration,
    identity,
    problems_of,
)

from sim.cli.main import main
from sim.inputs.load import load_scenario

DENSE = '"dense": {"eager": {"rows": [1, 64], "ms": [6, 9]}}'
TABLE = f'"costs": {{"form": "table",\n  {DENSE}}}'


def table(name: str, old: str, new: str, found: str, words: str) -> Broken:
    """A calibration table with one part of its text replaced; the mistake is in its costs, from line 4 on."""
    assert old in TABLE
    return calibration(name, CALIBRATION.replace(COSTS, TABLE.replace(old, new)), found, 0, words)


def rounds(name: str, batch: str, drafts: str, ms: str, found: str, words: str) -> Broken:
    costs = f'"costs": {{"form": "rounds", "batch": {batch}, "drafts": {drafts}, "ms": {ms}}}'
    return calibration(name, CALIBRATION.replace(COSTS, costs), found, 4, words)


GRAPHS = ', "graphs": {"capture_sizes": [1, 8]}'
CURVE = '"rows": [1, 64], "ms": [1, 1]'
CHAIN = f', "draft": {{"kind": "chain", "first": {{{CURVE}}}}}'
ROOFLINE = {"weight_bytes": 16e9, "flops_per_row": 16e9, "bandwidth_gb_per_s": 3350, "tflop_per_s": 989}
PHYSICS = f', "roofline": {json.dumps(ROOFLINE)}'
TABLES = [
    table("unknown form", '"table"', '"tabel"', "costs.form", "did you mean 'table'"),
    table("no form", '"form": "table",', "", "costs", "has no form"),
    table("torn table", '"ms": [6, 9]}}', '"ms": [6, ', "costs.dense.eager.ms", "cannot be read"),
    table("negative time", "[6, 9]", "[6, -9]", "costs.dense.eager.ms.1", "at least 0"),
    table("time NaN", "[6, 9]", "[6, NaN]", "costs.dense.eager.ms.1", "finite"),
    table("axis falls", "[1, 64]", "[64, 1]", "costs.dense.eager.rows.1", "1 after 64"),
    table("axis repeats", "[1, 64]", "[64, 64]", "costs.dense.eager.rows.1", "64 after 64"),
    table("a time too few", "[6, 9]", "[6]", "costs.dense.eager.ms", "1 entries for 2 points of rows"),
    table("all zero", "[6, 9]", "[0, 0]", "costs.dense.eager.ms", "is all zero"),
    table("a zero", "[6, 9]", "[0, 9]", "costs.dense.eager.ms.0", "at least 0.001 ms"),
    table("no column", DENSE, '"dense": {}', "costs.dense", "holds no column"),
    table("no eager column", DENSE, DENSE.replace("eager", "full") + GRAPHS, "costs.dense", "no eager column"),
    table("no captured column", DENSE, DENSE + GRAPHS, "costs.dense", "no captured column"),
    table("chain without narrow", DENSE, DENSE + CHAIN, "costs.draft.narrow", "is missing"),
    table("seconds", DENSE, DENSE.replace("6, 9", "0.006, 0.009") + PHYSICS, "costs.dense.eager.ms.0", "by 1000"),
    table("microseconds", DENSE, DENSE.replace("6, 9", "6000, 9000") + PHYSICS, "costs.dense.eager.ms.0", "by 1000"),
    table("a day a pass", "[6, 9]", "[6e6, 9e6]", "costs.dense.eager.ms.0", "by 1000"),
    rounds("rounds without baseline", "[1]", "[1, 2]", "[[7, 8]]", "costs.drafts.0", "drafts 0 tokens"),
    rounds("rounds of one cell", "[1]", "[0, 1]", "[[7, null]]", "costs.ms.0", "fewer than two cells"),
    rounds("a row too few", "[1, 8]", "[0, 1]", "[[7, 8]]", "costs.ms", "1 entries for 2 points of batch"),
    calibration(
        "weights above the memory",
        CALIBRATION.replace(
            "}}\n",
            '},\n "memory": {"gpu_memory_bytes": 8e9, "target_weight_bytes": 16e9, "kv_bytes_per_token": 1}}\n',
        ),
        "memory.target_weight_bytes",
        5,
        "fit into gpu_memory_bytes",
    ),
    Broken(
        "an arm of another model",
        "arms.x.calibration",
        22,
        {1: "calibration: c.json", 22: "arms: {x: {calibration: d.json}}"},
        words="does not give the same outputs",
        files={"c.json": CALIBRATION, "d.json": CALIBRATION.replace('"target": "t"', '"target": "u"')},
    ),
]


def test_the_table_itself_is_right(tmp_path):
    case = calibration("valid", CALIBRATION.replace(COSTS, TABLE), "", 0)
    assert load_scenario(case.write(tmp_path)).calibrations["calibration"].costs.dense.eager.ms == [6, 9]


@pytest.mark.parametrize("case", TABLES, ids=identity)
def test_loading_tells_the_place_the_key_and_the_remedy(case, tmp_path):
    assert_told(problems_of(case.write(tmp_path), case.sets), case)


@pytest.mark.parametrize("case", TABLES, ids=identity)
def test_the_command_exits_2_with_one_line_each(case, tmp_path, capsys):
    assert main(["run", str(case.write(tmp_path)), "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert_told(err.splitlines(), case)
