"""The shipped analytic calibrations, and the page about them, are what the code gives."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from sim.cost.analytic_accuracy import published_fit_ratios, ratio_table
from sim.cost.assumptions import Assumptions
from sim.cost.compile import compile_costs
from sim.cost.memory import kv_blocks
from sim.cost.step_costs import GraphMode, StepShape
from sim.inputs.load_calibration import load_calibration
from sim.inputs.source import Source
from sim.report.calibration_json import calibration_json

ROOT = Path(__file__).resolve().parents[2]


def script():
    spec = importlib.util.spec_from_file_location("script", ROOT / "scripts" / "analytic_calibrations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = script()
SETUPS = {setup.name: setup for setup in SCRIPT.shipped_setups()}


def loaded(name):
    return load_calibration(name, Source("scenario.yaml", ROOT, {}, {}, {}))


def test_every_analytic_file_has_its_setup():
    assert {path.stem for path in (ROOT / "calibrations").glob("analytic-*.json")} == set(SETUPS)


@pytest.mark.parametrize("name", sorted(SETUPS))
def test_files_are_what_the_script_writes(name):
    stored = (ROOT / "calibrations" / f"{name}.json").read_bytes()
    assert stored == calibration_json(SCRIPT.analytic_calibration(SETUPS[name])).encode()
    assert len(stored) < 100_000


@pytest.mark.parametrize("name", sorted(SETUPS))
def test_files_price_steps(name):
    calibration = loaded(name)
    assert (calibration.kind, calibration.async_scheduling) == ("analytic", True)
    drafts = 3 if SETUPS[name].draft is not None else 0
    costs = compile_costs(calibration, drafts)
    round_terms = costs.terms(StepShape(16, 16 * drafts, 16 * 1000, [], 0, 0), drafts)
    assert round_terms.graph == GraphMode.FULL
    assert not round_terms.extrapolated
    assert (round_terms.draft > 0) == (drafts > 0)
    assert min(round_terms.host, round_terms.kv_update, round_terms.sampling) > 0
    prefill = costs.terms(StepShape(0, 0, 0, [(2048, 0)], 1, 2048), drafts)
    assert prefill.graph == GraphMode.EAGER
    assert prefill.target > round_terms.target
    plain, beside = (kv_blocks(calibration, None, None, 16, 0.9, with_draft=draft).number for draft in (False, True))
    assert plain - beside > 0 if drafts else plain == beside
    assert beside > 1000


def test_the_page_shows_the_ratios_of_the_code():
    setup = SETUPS["analytic-h100-llama-3.1-8b-eagle"]
    ratios = published_fit_ratios(setup.target_roofline(), setup.draft_roofline())
    page = (ROOT / "docs" / "analytic.md").read_text("utf-8")
    assert ratio_table(ratios) in page
    assert all(0.5 < one.ratio < 1.5 for one in ratios)


def test_the_page_states_every_assumption():
    page = (ROOT / "docs" / "analytic.md").read_text("utf-8")
    for statement in Assumptions().statements():
        assert f"* {statement}\n" in page
