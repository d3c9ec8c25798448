"""The command `specsim`: what it prints, where, and with which exit code.

stdout is the result, stderr progress and warnings. A command returns its text; it is written here, in one place, so
that an error leaves nothing on stdout. Exit codes: 0 done, 2 a mistake that the user can mend, 3 outside the calibrated
range under --strict, 130 interrupted, 141 nobody reads stdout any more; 1, with a traceback, is a bug.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from ..inputs.errors import InputError, OutsideCalibrationError, SpecsimError
from .one_line import one_line
from .run import run
from .schema import schema
from .usage import usage_problem

USER_ERROR, OUTSIDE_CALIBRATION, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141


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
cli.add_command(schema)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own) and return its exit code."""
    try:
        code = _outcome(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more on its way out: give it something that can be written to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def _outcome(arguments: list[str]) -> int:
    """click's own `main` would answer a broken pipe with exit code 1, hence its two halves."""
    try:
        with cli.make_context("specsim", arguments) as context:
            text: str = cli.invoke(context)
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except click.UsageError as error:
        return _complain([str(usage_problem(error))], USER_ERROR)
    except OutsideCalibrationError as error:
        return _complain([str(error)], OUTSIDE_CALIBRATION)
    except InputError as error:
        return _complain([str(problem) for problem in error.problems], USER_ERROR)
    except SpecsimError as error:
        return _complain([str(error)], USER_ERROR)
    sys.stdout.write(text)
    return 0


def _complain(lines: Sequence[str], code: int) -> int:
    for line in lines:
        print(one_line(line), file=sys.stderr)
    return code
