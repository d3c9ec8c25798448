"""The command `specsim`: what it prints, where, and with which exit code.

stdout is the result, stderr progress and warnings. A command returns its text; it is written here, in one place, so
that an error leaves nothing on stdout. Exit codes: 0 done, 2 a mistake that the user can mend, 3 outside the calibrated
range under --strict, 130 interrupted, 141 nobody reads stdout any more, 143 terminated; 1, with a traceback, is a bug.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from ..inputs.errors import InputError, OutsideCalibrationError, SpecsimError
from .acceptance import acceptance
from .calibrate import calibrate
from .capacity import capacity
from .explain import explain
from .one_line import one_line
from .profile import profile
from .report import report
from .run import run
from .schema import schema
from .sweep import sweep
from .tune import tune
from .usage import usage_problem

USER_ERROR, OUTSIDE_CALIBRATION, INTERRUPTED, BROKEN_PIPE, TERMINATED = 2, 3, 130, 141, 143


def print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        from .. import __version__

        click.echo(f"specsim {__version__}")
        context.exit()


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(context: click.Context) -> str | None:
    """Does speculative decoding pay for your model, GPU and traffic, and why."""
    return None if context.invoked_subcommand else f"{context.get_help()}\n"


cli.add_command(run)
cli.add_command(tune)
cli.add_command(sweep)
cli.add_command(capacity)
cli.add_command(explain)
cli.add_command(calibrate)
cli.add_command(acceptance)
cli.add_command(profile)
cli.add_command(report)
cli.add_command(schema)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own) and return its exit code."""
    try:
        return _outcome(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        return INTERRUPTED


def command() -> int:
    """The process `specsim`: as `main`, and SIGTERM unwinds as Ctrl-C does, so that worker processes end too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    return main()


def _outcome(arguments: list[str]) -> int:
    """click's own `main` would answer a broken pipe with exit code 1, hence its two halves."""
    try:
        with cli.make_context("specsim", arguments) as context:
            text: str = cli.invoke(context)
    except click.exceptions.Exit as done:  # --help and --version
        return _write("") or done.exit_code
    except BrokenPipeError:  # while they were printed
        _give_up(sys.stdout)
        return BROKEN_PIPE
    except click.UsageError as error:
        return _complain([str(usage_problem(error))], USER_ERROR)
    except OutsideCalibrationError as error:
        return _complain([str(error)], OUTSIDE_CALIBRATION)
    except InputError as error:
        return _complain([str(problem) for problem in error.problems], USER_ERROR)
    except SpecsimError as error:
        return _complain([str(error)], USER_ERROR)
    except MemoryError:
        what = "the run needs more memory than there is, requests times output tokens must fit"
        return _complain(
            [f"specsim:1:1: workload.requests: {what}, ask for fewer requests or replications"], USER_ERROR
        )
    return _write(text)


def _write(text: str) -> int:
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up(sys.stdout)
        return BROKEN_PIPE
    except OSError as error:
        if sys.stdout is not None:
            _give_up(sys.stdout)
        reason = error.strerror or str(error)
        return _complain(
            [f"specsim:1:1: stdout: {reason}, the result is written there, redirect it elsewhere"], USER_ERROR
        )
    return 0


def _give_up(stream: TextIO) -> None:
    """Python flushes its streams once more on its way out: give them something that can be written to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(lines: Sequence[str], code: int) -> int:
    """Tell what is wrong; where nobody can be told, the exit code still says it."""
    try:
        for line in lines if sys.stderr is not None else ():
            print(one_line(line), file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)
    return code
