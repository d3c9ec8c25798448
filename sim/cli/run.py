"""`specsim run`: a scenario to its paired answer."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .one_line import one_line

if TYPE_CHECKING:
    from ..answers.run import RunResult

MAX_JOBS = 1024
EVERY_REPLICATION = sys.maxsize
WHOLE_RUN_S = (0.0, math.inf)


@click.command()
@click.argument("scenario", required=False)
@click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Override a key of the scenario; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--out", metavar="DIR", help="Write result.json, requests and steps (CSV) into DIR.")
@click.option("--timeline", metavar="FILE", help="Write the first replication as a trace for ui.perfetto.dev.")
@click.option("--timeline-window", metavar="FROM:TO", help="Only this part of it, in seconds.")
@click.option("--strict", is_flag=True, help="Refuse to leave the calibrated range (exit 3).")
@click.option("--jobs", type=click.IntRange(1, MAX_JOBS), default=1, show_default=True, help="Processes to use.")
def run(
    scenario: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    out: str | None,
    timeline: str | None,
    timeline_window: str | None,
    strict: bool,
    jobs: int,
) -> str:
    """Compare serving with and without speculation on the same requests.

    SCENARIO is a file, the result.json of an earlier run, or the name of a shipped scenario; without it: quickstart.

    A timeline is Chrome trace JSON, compressed if FILE ends in .gz: the first replication of every arm and replica with
    its steps by phase, its requests, and counters of the queue, the batch and the KV blocks.
    """
    from ..answers.run import run_scenario
    from ..report.files import make_directory, write_run
    from .progress import progress_on_stderr

    if out == "":
        raise click.BadParameter("the directory has no name", param_hint="--out")
    directory = None if out is None else Path(out)
    if directory is not None:
        make_directory(directory)
    window_s = _window(timeline, timeline_window)
    _check_timeline(timeline, scenario, directory)
    with progress_on_stderr() as progress:
        result = run_scenario(
            None if scenario is None else Path(scenario),
            sets,
            jobs,
            strict,
            progress,
            keep_tables=EVERY_REPLICATION if directory is not None else int(timeline is not None),
        )
    if timeline is not None:
        _write_timeline(result, timeline, window_s)
    if directory is not None:
        write_run(result, directory)
    return _json(result) if as_json else _screen(result.document)


def _window(timeline: str | None, text: str | None) -> tuple[float, float]:
    """Seconds from FROM:TO; either may be left out."""
    if text is None:
        return WHOLE_RUN_S
    if timeline is None:
        raise click.BadParameter("there is no --timeline to be cut", param_hint="--timeline-window")
    first, colon, last = text.partition(":")
    try:
        window = (float(first or WHOLE_RUN_S[0]), float(last or WHOLE_RUN_S[1]))
    except ValueError:
        window = (math.nan, math.nan)
    if not (colon and 0 <= window[0] < window[1]):
        raise click.BadParameter(
            f"{text!r} is no FROM:TO in seconds with FROM before TO", param_hint="--timeline-window"
        )
    return window


def _check_timeline(timeline: str | None, scenario: str | None, directory: Path | None) -> None:
    """Tell what keeps the timeline from being written before the simulation runs."""
    if timeline is None:
        return
    if timeline == "":
        raise click.BadParameter("the file has no name", param_hint="--timeline")
    from ..report.timeline_file import check_timeline_file

    own = [] if scenario is None else [Path(scenario)]
    check_timeline_file(timeline, own if directory is None else [*own, directory / "result.json"])


def _write_timeline(result: RunResult, timeline: str, window_s: tuple[float, float]) -> None:
    from ..report.timeline_file import write_timeline

    print(one_line(f"timeline: {timeline}: {write_timeline(result, timeline, window_s)}"), file=sys.stderr)


def _json(result: RunResult) -> str:
    """The document; its warnings, which nobody sees in a pipe, also go to stderr."""
    from ..report.json_text import json_text

    for warning in result.document["warnings"]:
        print(one_line(f"warning: {warning}"), file=sys.stderr)
    return json_text(result.document)


def _screen(document: dict[str, Any]) -> str:
    from rich.console import Console

    from ..report.terminal import print_answer

    console = Console(highlight=False)
    with console.capture() as capture:
        print_answer(document, console)
    return capture.get()
