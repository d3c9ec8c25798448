"""Every phase runs on a CPU, for every kind of model, and a point that fails is a row."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from profiler.dims import Dims, eagle_head
from profiler.errors import OutOfMemoryError
from profiler.linear import Fp8Linear, PlainLinear
from profiler.plan import make_plan
from profiler.runner import run
from profiler.session import make_setup
from profiler.store import Store
from profiler.timing import Settings
from profiler.torch_device import TorchDevice

DENSE = Dims("dense", 32, 48, 3, 4, 2, 8, 50)
EXPERTS = replace(DENSE, name="experts", experts=4, experts_per_token=2, expert_width=24, tied=False)
QUICK = Settings(min_ms=0.01, min_n=1, rel_ci=10.0, max_s=0.003, warm_n=1, warm_ms=0.0)


def plan_of(target, draft, **changes):
    setup = replace(make_setup("smoke", device="cpu"), target=target, draft=draft, **changes)
    plan = make_plan(setup)
    return replace(plan, preset=replace(plan.preset, settings=QUICK, live_steps=3))


@pytest.mark.parametrize(
    ("target", "draft", "changes"),
    [
        (DENSE, replace(DENSE, layers=1), {}),
        (DENSE, None, {}),
        (EXPERTS, eagle_head(EXPERTS), {}),
        (DENSE, eagle_head(DENSE), {"depths": (1, 2)}),
        (DENSE, replace(DENSE, layers=1), {"dtype": "bf16"}),
    ],
    ids=["draft", "alone", "experts and eagle", "two depths", "bf16"],
)
def test_every_point_of_a_plan_has_a_time(tmp_path, target, draft, changes):
    plan = plan_of(target, draft, **changes)
    device = TorchDevice(plan)
    with Store(tmp_path, plan.setup, device.environment()) as store:
        run(plan, device, store)
        assert {(row.point.name, row.status) for row in store.rows if row.status != "ok"} == set()
        assert {row.point for row in store.rows} >= set(plan.points)
        (live,) = [row for row in store.rows if row.point.phase == "live"] or [None]
    if draft is not None:
        contexts = [step[1] for step in live.extra["steps"]]
        committed = [step[2] for step in live.extra["steps"]]
        assert [b - a for a, b in pairwise(contexts)] == committed[:-1]


def test_failures_are_rows_and_the_run_goes_on(tmp_path, monkeypatch):
    plan = plan_of(DENSE, None)
    device = TorchDevice(plan)
    once = device._once

    def failing(point, settings):
        if point.phase == "head":
            raise torch.OutOfMemoryError("CUDA out of memory")
        if point.phase == "sampling":
            raise RuntimeError("no kernel\nfor this")
        return once(point, settings)

    monkeypatch.setattr(device, "_once", failing)
    with Store(tmp_path, plan.setup, device.environment()) as store:
        run(plan, device, store)
        states = {row.point.phase: row for row in store.rows if row.status != "ok"}
    assert states["sampling"].extra["why"] == "no kernel for this"
    assert states["head"].status in ("oom", "skipped")
    with pytest.raises(OutOfMemoryError):
        device.measure(plan.points[0].__class__("head", "q1"), QUICK)


def test_weights_have_the_bytes_that_the_plan_counts():
    for dims in (DENSE, EXPERTS):
        plan = plan_of(dims, eagle_head(dims))
        models = TorchDevice(plan)._models
        for model in (models.target, models.draft):
            held = {id(part): part for part in tensors(model) if isinstance(part, torch.Tensor) and part.dim() == 2}
            if model.dims.fusion:
                held.pop(id(model.embedding), None)
                held.pop(id(model.head.weight), None)
            assert sum(part.numel() for part in held.values()) == model.dims.parameters()


def tensors(thing):
    """Everything that a model's parts hold, the rotary table left out."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, list):
        for part in thing:
            yield from tensors(part)
    elif hasattr(thing, "__dict__") and type(thing).__module__.startswith("profiler"):
        for name, part in vars(thing).items():
            if name not in ("cosine", "sine", "attention", "dims"):
                yield from tensors(part)


def test_fp8_products_are_close_to_plain_ones():
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(64, 32, generator=generator, dtype=torch.float32).to(torch.bfloat16)
    rows = torch.randn(16, 32, generator=generator).to(torch.bfloat16)
    try:
        found = Fp8Linear(weight)(rows)
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"no fp8 product here: {error}")
    expected = PlainLinear(weight)(rows).float()
    assert (found.float() - expected).norm() / expected.norm() < 0.06
