"""Profile a bare machine with one command, `python -m profiler.box`. Needs torch and numpy alone.

The measuring process is a child: where a CUDA error leaves it useless, a new one goes on. The folder then holds the
points and live loops; `specsim profile fit DIR` and `check DIR` turn them into a calibration where specsim is
installed, and this command does so at once if that is here.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

from .errors import DeviceLostError, ProfileError
from .plan import make_plan, memory_bytes
from .point import Point
from .presets import PRESETS
from .session import make_setup, run_folder
from .setup import DEVICES, Setup
from .store import POINTS_FILE

USER_ERROR, LOST_DEVICE = 2, 75
MOST_LOST = 20
NEEDED_TO_FIT = ("pydantic", "yaml", "click")


def main(arguments: list[str] | None = None) -> int:
    """Run a command line; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        setup = make_setup(
            options.preset,
            options.target,
            options.draft,
            options.dtype,
            options.device,
            options.threads,
            tuple(int(part) for part in options.depths.split(",")) if options.depths else (),
            options.backend,
            options.seed,
        )
        if options.child:
            return _measure(setup, options.out)
        print(_plan_line(setup), flush=True)
    except (ProfileError, ValueError) as error:
        print(error, file=sys.stderr)
        return USER_ERROR
    code = supervised([sys.executable, "-m", "profiler.box", "--child", *(arguments or sys.argv[1:])], options.out)
    return code or _fit_and_check(options.out)


def supervised(command: list[str], folder: Path, most_lost: int = MOST_LOST) -> int:
    """Run the measuring child, again where it lost its device and had measured something; returns its exit code.

    A child that is killed at one point twice would be so for ever: the run ends with its code.
    """
    before = -1
    for _ in range(most_lost):
        code = subprocess.call(command)
        size = (folder / POINTS_FILE).stat().st_size if (folder / POINTS_FILE).exists() else 0
        if code in (0, USER_ERROR) or (code != LOST_DEVICE and size == before):
            return code
        before = size
        print(f"the measuring process ended with {code}: a new one goes on", file=sys.stderr)
    return LOST_DEVICE


def _measure(setup: Setup, folder: Path) -> int:
    started = time.monotonic()

    def show(done: int, total: int, point: Point, status: str) -> None:
        left = (time.monotonic() - started) / max(1, done) * (total - done)
        print(f"{done}/{total} {point.name}: {status}, about {left:.0f} s left", flush=True)

    try:
        measured, held = run_folder(setup, folder, show)
    except DeviceLostError as error:
        print(f"device lost: {error}", file=sys.stderr)
        return LOST_DEVICE
    print(f"{measured} points measured in {time.monotonic() - started:.0f} s, {held} in {folder / POINTS_FILE}")
    return 0


def _plan_line(setup: Setup) -> str:
    plan = make_plan(setup)
    size = sum(memory_bytes(plan).values()) / 2**30
    return f"{len(plan.points)} points, {size:.1f} GiB, about {plan.seconds():.0f} s"


def _fit_and_check(folder: Path) -> int:
    """Where specsim is installed, go on to the calibration and the check; else say how."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED_TO_FIT):
        print(f"next, where specsim is installed: specsim profile fit {folder} && specsim profile check {folder}")
        return 0
    for step in ("fit", "check"):
        code = subprocess.call([sys.executable, "-m", "sim", "profile", step, str(folder)])
        if code:
            return code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m profiler.box", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--preset", default="full", choices=list(PRESETS))
    parser.add_argument("--target")
    parser.add_argument("--draft")
    parser.add_argument("--dtype")
    parser.add_argument("--device", choices=DEVICES)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--depths")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("profile"))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
