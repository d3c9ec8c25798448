"""The fit gives back the functions of a synthetic device, also with noise and after a run that was cut short."""

from dataclasses import replace

import numpy as np
import pytest

from profiler.calibration import calibration_of
from profiler.check import choices, live_checks
from profiler.fit import fit_costs
from profiler.folds import folds
from profiler.plan import make_plan
from profiler.point import Point
from profiler.pricing import compiled
from profiler.runner import run
from profiler.session import make_setup
from profiler.store import Store, read_points
from profiler.synthetic import SyntheticDevice
from sim.cost.step_costs import GraphMode


class InterruptedRunError(Exception):
    """Stands for a kill in the middle of a run."""


class Failing(SyntheticDevice):
    """Ends after so many points."""

    left = 150

    def measure(self, point, settings):
        self.left -= 1
        if self.left < 0:
            raise InterruptedRunError
        return super().measure(point, settings)


def measured(folder, noise=0.0, preset="full", depths=(), cut=False, **device):
    setup = make_setup(preset, device="synthetic", noise=noise, depths=depths)
    plan = make_plan(setup)
    if cut:
        first = Failing(setup, noise, live_steps=plan.preset.live_steps)
        with pytest.raises(InterruptedRunError), Store(folder, setup, first.environment()) as store:
            run(plan, first, store)
    one = SyntheticDevice(setup, noise, live_steps=plan.preset.live_steps, **device)
    with Store(folder, setup, one.environment()) as store:
        run(plan, one, store)
    return one, read_points(folder)


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """A full run without noise: the device, its points and its tables."""
    device, points = measured(tmp_path_factory.mktemp("exact"))
    return device, points, fit_costs(points)


def errors(costs, truth):
    """Relative errors of every table cell by term."""
    found = {}
    for mode, curve in (("graph", costs.dense.full), ("eager", costs.dense.eager)):
        found[f"dense {mode}"] = [
            ms / truth.dense_ms(row, mode) - 1 for row, ms in zip(curve.rows, curve.ms, strict=True)
        ]
    table = costs.decode_attention
    found["attention"] = [
        table.ms[i][j][k] / truth.attention_ms(b, q, c) - 1
        for i, b in enumerate(table.batch)
        for j, q in enumerate(table.query)
        for k, c in enumerate(table.context)
    ]
    prefill = costs.prefill_attention
    found["prefill"] = [
        prefill.ms[i][j] / truth.prefill_ms(chunk, start) - 1
        for i, chunk in enumerate(prefill.chunk)
        for j, start in enumerate(prefill.start)
    ]
    curves = {"head": truth.head_ms, "kv_update": truth.kv_update_ms, "host": truth.host_ms}
    for name, function in curves.items():
        curve = getattr(costs, name)
        found[name] = [ms / function(row) - 1 for row, ms in zip(curve.rows, curve.ms, strict=True)]
    first, narrow = costs.draft.first, costs.draft.narrow
    found["first"] = [ms / truth.first_ms(row) - 1 for row, ms in zip(first.rows, first.ms, strict=True)]
    found["narrow"] = [
        narrow.ms[i][j] / truth.narrow_ms(b, c) - 1
        for i, b in enumerate(narrow.batch)
        for j, c in enumerate(narrow.context)
    ]
    return {name: float(np.median(np.abs(values))) for name, values in found.items()}


def test_every_table_comes_back(exact):
    device, _, costs = exact
    found = errors(costs, device.truth())
    assert set(found) >= {"dense graph", "dense eager", "attention", "prefill", "first", "narrow"}
    assert max(found.values()) < 1e-4


def test_every_table_comes_back_from_noise_and_a_resumed_run(tmp_path):
    device, points = measured(tmp_path, noise=0.03, cut=True)
    assert {name: error for name, error in errors(fit_costs(points), device.truth()).items() if error > 0.01} == {}
    assert 0.1 < folds(points, fit_costs(points))["repeatability"].median_percent < 2
    keys = [row.key for row in points.rows]
    assert len(keys) == len(set(keys))


def test_a_resumed_run_holds_what_a_whole_one_does(tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    measured(whole, noise=0.03, preset="quick")
    measured(resumed, noise=0.03, preset="quick", cut=True)
    assert (whole / "points.jsonl").read_bytes() == (resumed / "points.jsonl").read_bytes()


def test_the_stairs_are_where_the_device_has_them(exact):
    device, _, costs = exact
    tables = compiled(costs, 3)
    truth = device.truth()
    for rows in (64, 65, 128, 129, 256, 257):
        expected = truth.dense_ms(rows)
        assert tables.dense[GraphMode.FULL].at(rows) == pytest.approx(expected, rel=1e-6)


def test_two_depths_give_the_whole_model(tmp_path):
    device, points = measured(tmp_path, preset="quick", depths=(8, 16))
    found = errors(fit_costs(points), device.truth())
    assert max(found.values()) < 0.01
    held_out = folds(points, fit_costs(points, 16), 16)
    assert held_out["additivity"].median_percent < 1


def test_held_out_points_of_an_additive_device_are_met(exact):
    _, points, costs = exact
    found = folds(points, costs)
    assert found["repeatability"].max_percent == 0
    assert found["additivity"].median_percent < 0.5
    assert found["chain"].max_percent < 0.5
    assert found["mixed"].median_percent < 3
    assert -5 < found["skew"].bias_percent < 0  # the device takes longer where contexts are unlike
    assert all(abs(one.error_percent) < 1 for one in live_checks(points, costs))
    assert all(one.regret_percent < 0.5 and one.kendall_tau > 0.9 for one in choices(costs))


def test_an_error_of_the_tables_is_seen(exact):
    _, points, costs = exact
    slow = costs.model_copy(
        update={"head": costs.head.model_copy(update={"ms": [10 * ms + 5 for ms in costs.head.ms]})}
    )
    assert folds(points, slow)["additivity"].bias_percent > 20
    assert min(one.error_percent for one in live_checks(points, slow)) > 20


def test_a_point_that_does_not_fit_takes_the_larger_ones_with_it(tmp_path):
    device, points = measured(tmp_path, memory_tokens=400_000)
    states = {row.status for row in points.rows}
    assert states == {"ok", "oom", "skipped"}
    costs = fit_costs(points)
    assert costs.decode_attention.batch[0] == 1
    assert costs.decode_attention.batch[-1] * costs.decode_attention.context[-1] <= 400_000
    assert max(errors(costs, device.truth()).values()) < 0.01
    tried = [name for name in device.calls if name.startswith("attention 128q")]
    lost = [row for row in points.rows if row.status == "skipped" and row.point.phase == "attention"]
    assert lost
    assert not {row.point.name for row in lost} & set(tried)


def test_the_dense_part_is_refined_where_it_changes_most(tmp_path):
    _, points = measured(tmp_path, preset="quick")
    planned = set(make_plan(points.setup).points)
    refined = [row.point for row in points.rows if row.point not in planned]
    assert len(refined) == make_plan(points.setup).preset.refine
    assert all(point.phase == "body" for point in refined)


class Throttled(SyntheticDevice):
    """Runs slower for a while, as a hot device does."""

    slow = range(60, 110)

    def measure(self, point, settings):
        measurement = super().measure(point, settings)
        if len(self.calls) not in self.slow:
            return measurement
        sample = measurement.sample
        slowed = replace(sample, median_ms=1.3 * sample.median_ms, mean_ms=1.3 * sample.mean_ms)
        return measurement._replace(sample=slowed)


def test_points_that_were_measured_while_the_device_had_drifted_are_measured_again(tmp_path):
    setup = make_setup("full", device="synthetic")
    plan = make_plan(setup)
    device = Throttled(setup, live_steps=plan.preset.live_steps)
    with Store(tmp_path, setup, device.environment()) as store:
        run(plan, device, store)
    points = read_points(tmp_path)
    again = [row for row in points.rows if row.point.repeat == 2 and row.point.phase != "sentinel"]
    assert 45 <= len(again) <= 90
    assert max(errors(fit_costs(points), device.truth()).values()) < 1e-4
    with Store(tmp_path, setup, device.environment()) as store:
        assert run(plan, device, store) == 0


def test_a_synthetic_calibration_says_that_nothing_is_measured(exact):
    points = exact[1]
    calibration = calibration_of(points, "a-name")
    assert calibration.kind == "analytic"
    assert "synthetic" in calibration.provenance.notes[0]
    assert calibration.provenance.measured == []
    assert calibration.heldout.folds["additivity"].cells == 32


def test_points_know_their_acceptance(exact):
    points = exact[1]
    (row,) = [row for row in points.ok("live") if row.point == Point("live", "8q4s1k", "graph", 0, 0.7)]
    committed = np.mean([step[2] for step in row.extra["steps"]]) / 8
    assert committed == pytest.approx(1 + 0.7 + 0.7**2 + 0.7**3, abs=0.2)
