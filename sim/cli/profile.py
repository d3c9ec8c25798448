"""`specsim profile`: measure a GPU, or this CPU, into a calibration. The profiler and torch are loaded only here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .progress import progress_on_stderr

if TYPE_CHECKING:
    from profiler.point import Point
    from profiler.setup import Setup

COMMAND = "specsim profile"
DEFAULT_FOLDER = "profile"


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def profile(context: click.Context) -> str | None:
    """Measure a GPU, or this CPU, into a calibration."""
    return None if context.invoked_subcommand else f"{context.get_help()}\n"


def setup_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What is measured, the same options for `plan` and `run`."""
    options = [
        click.option("--preset", default="smoke", show_default=True, help="smoke, quick or full."),
        click.option("--target", metavar="MODEL", help="A config.json or a built-in name; smoke has a tiny one."),
        click.option("--draft", metavar="MODEL", help="The same for the draft; eagle: an EAGLE-type head."),
        click.option("--dtype", help="bf16 (on a GPU), fp16, fp8, or fp32 (on a CPU)."),
        click.option("--device", type=click.Choice(["cuda", "cpu", "synthetic"]), help="By default a GPU if any."),
        click.option("--threads", type=click.IntRange(1, 1024), help="Threads of a CPU; 1 by default."),
        click.option(
            "--depths", metavar="LOW,HIGH", help="Measure two depths of the target; the slope gives the rest."
        ),
        click.option(
            "--backend", default="auto", help="Attention: flashinfer, varlen, flex, sdpa; auto takes the first."
        ),
        click.option("--noise", type=click.FloatRange(0, 1), default=0.0, help="Of the synthetic device."),
        click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of order and weights."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@profile.command("plan")
@setup_options
def plan_command(**options: Any) -> str:
    """Say what would be measured, in how much memory and time."""
    with told_errors():
        from profiler.plan import make_plan
        from profiler.text import plan_text

        return plan_text(make_plan(_setup(options)))


@profile.command("run")
@setup_options
@click.option("--out", metavar="DIR", default=DEFAULT_FOLDER, show_default=True, help="Results; an old run goes on.")
@click.option("--retry-failed", is_flag=True, help="Measure points again that have no time.")
def run_command(out: str, retry_failed: bool, **options: Any) -> str:
    """Measure. A run that was killed goes on where it ended."""
    with told_errors(), progress_on_stderr() as report:
        from profiler.session import run_folder

        def show(done: int, total: int, point: Point, status: str) -> None:
            report(done, total, point.name if status == "ok" else f"{point.name}: {status}")

        measured, held = run_folder(_setup(options), Path(out), show, retry_failed=retry_failed)
    return f"{measured} points measured, {held} in {Path(out) / 'points.jsonl'}\n"


@profile.command("fit")
@click.argument("folder", metavar="[DIR]", default=DEFAULT_FOLDER)
@click.option("--out", metavar="FILE", help="The calibration; by default calibration.json in DIR.")
@click.option("--name", help="Of the calibration; by default from the device and the models.")
def fit_command(folder: str, out: str | None, name: str | None) -> str:
    """Make a calibration of measured points, with its error on what it has not seen."""
    from .output_file import refuse_output, write_output

    with told_errors():
        from profiler.calibration import calibration_name, calibration_of, errors_of
        from profiler.folds import drift_percent
        from profiler.store import read_points
        from profiler.text import fit_text

        path = Path(out) if out is not None else Path(folder) / "calibration.json"
        points = read_points(Path(folder))
        refuse_output(str(path), "--out", [Path(folder) / "points.jsonl"])
        calibration = calibration_of(points, name or calibration_name(points))
    from ..report.calibration_json import calibration_json

    write_output(calibration_json(calibration), path)
    costs: Any = calibration.costs
    return fit_text(calibration.name, path, errors_of(points, costs), drift_percent(points))


@profile.command("check")
@click.argument("folder", metavar="[DIR]", default=DEFAULT_FOLDER)
@click.option("--calibration", metavar="FILE", help="By default calibration.json in DIR.")
def check_command(folder: str, calibration: str | None) -> str:
    """Hold a calibration against live speculative loops and whole steps that were timed on the device."""
    with told_errors():
        from profiler.calibration import checked_costs, errors_of
        from profiler.check import choices, live_checks
        from profiler.store import read_points
        from profiler.text import check_text

        points = read_points(Path(folder))
        costs, measured = checked_costs(points, calibration or str(Path(folder) / "calibration.json"))
        return check_text(errors_of(points, costs), live_checks(points, measured), choices(measured))


def _setup(options: dict[str, Any]) -> Setup:
    from profiler.session import make_setup

    depths = options.pop("depths")
    try:
        parsed = tuple(int(part) for part in depths.split(",")) if depths else ()
    except ValueError as error:
        raise click.BadParameter(f"{depths!r} is not like 4,8", param_hint="--depths") from error
    return make_setup(depths=parsed, **options)


@contextmanager
def told_errors() -> Iterator[None]:
    """A mistake that the profiler names becomes one of the command line."""
    from profiler.errors import DeviceLostError, ProfileError

    from ..inputs.errors import InputError, Problem

    try:
        yield
    except DeviceLostError as error:
        rule, remedy = "a lost device needs a new process", "run the same command again: it goes on"
        raise InputError([Problem(COMMAND, 1, 1, "device", " ".join(str(error).split()), rule, remedy)]) from error
    except ProfileError as error:
        place, _, line = error.place.rpartition(":")
        file, number = (place, int(line)) if line.isdigit() else (error.place, 1)
        raise InputError([Problem(file, number, 1, error.field, error.what, error.rule, error.remedy)]) from error
