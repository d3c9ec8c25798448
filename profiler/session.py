"""From options to a results folder: setup, plan, device, run. Needs no more than torch and numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .builtin_models import draft_model, model
from .device import Device
from .errors import ProfileError
from .plan import Plan, make_plan, memory_bytes
from .presets import PRESETS
from .runner import Progress, run
from .setup import Setup, check_setup
from .store import Store
from .synthetic import SyntheticDevice

COMMAND = "specsim profile"
SMOKE_PAIR = ("tiny-target", "tiny-draft")
SYNTHETIC_PAIR = ("llama-3.1-8b", "llama-3.2-1b")
MEMORY_SHARE = 0.9


def make_setup(
    preset: str = "smoke",
    target: str | None = None,
    draft: str | None = None,
    dtype: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    depths: tuple[int, ...] = (),
    backend: str = "auto",
    seed: int = 1,
    noise: float = 0.0,
) -> Setup:
    """A setup with defaults filled in: CUDA where there is a GPU, bf16 there and fp32 on a CPU. Raises ProfileError."""
    if preset not in PRESETS:
        rule = f"presets are {', '.join(PRESETS)}"
        raise ProfileError(COMMAND, "--preset", f"unknown preset {preset!r}", rule, "name one of them")
    if target is None:
        if preset != "smoke" and device != "synthetic":
            rule = "only the smoke preset has models of its own"
            raise ProfileError(COMMAND, "--target", "is not given", rule, "name a model or give a config.json")
        target, own_draft = SYNTHETIC_PAIR if device == "synthetic" else SMOKE_PAIR
        draft = draft or own_draft
    device = device or default_device()
    dims = model(target, "--target")
    setup = Setup(
        target=dims,
        draft=draft_model(draft, dims),
        dtype=dtype or ("fp32" if device == "cpu" else "bf16"),
        device=device,
        backend=backend,
        preset=preset,
        threads=threads or 1,
        seed=seed,
        depths=depths,
        noise=noise,
    )
    check_setup(setup)
    return setup


def default_device() -> str:
    """CUDA where torch sees a GPU. Raises ProfileError without torch."""
    return "cuda" if require_torch().cuda.is_available() else "cpu"


def require_torch() -> Any:
    """The module torch. Raises ProfileError where it is not installed."""
    try:
        import torch
    except ImportError as error:
        rule, remedy = "models run on torch", "install the extra `profile`, or try `--device synthetic`"
        raise ProfileError(COMMAND, "torch", "is not installed", rule, remedy) from error
    return torch


def open_device(plan: Plan) -> Device:
    """The device of a plan, with its models in memory. Raises ProfileError where it is absent or too small."""
    setup = plan.setup
    if setup.device == "synthetic":
        return SyntheticDevice(setup, setup.noise, live_steps=plan.preset.live_steps)
    torch = require_torch()
    if setup.device == "cuda" and not torch.cuda.is_available():
        rule, remedy = "CUDA needs an NVIDIA GPU, its driver and a torch built for it", "use `--device cpu`"
        raise ProfileError(COMMAND, "--device", "torch sees no CUDA GPU", rule, remedy)
    from .torch_device import TorchDevice, free_bytes

    check_memory(plan, free_bytes(setup.device))
    return TorchDevice(plan)


def check_memory(plan: Plan, free: float) -> None:
    """Raise ProfileError where the plan's models and KV do not fit, before anything is allocated."""
    parts = memory_bytes(plan)
    needed = sum(parts.values())
    if needed > MEMORY_SHARE * free:
        shown = ", ".join(f"{name} {size / 2**30:.2f}" for name, size in parts.items())
        what = f"{needed / 2**30:.2f} GiB are needed ({shown}), {free / 2**30:.2f} GiB are free"
        rule = f"a run takes at most {MEMORY_SHARE:.0%} of what is free"
        remedy = "measure two depths with `--depths 4,8`, a smaller preset or another dtype"
        raise ProfileError(COMMAND, "memory", what, rule, remedy)


def run_folder(
    setup: Setup, folder: Path, progress: Progress | None = None, *, retry_failed: bool = False
) -> tuple[int, int]:
    """Measure what the folder lacks; returns how many points were measured now, and how many it holds."""
    plan = make_plan(setup)
    device = open_device(plan)
    with Store(folder, setup, device.environment(), retry_failed=retry_failed) as store:
        measured = run(plan, device, store, progress)
        return measured, len(store.rows)
