"""`specsim run`: a scenario to its paired answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .one_line import one_line
from .result_options import jobs_option, output_directory, printed_json

if TYPE_CHECKING:
    pass

EVERY_REPLICATION = sys.maxsize


@click.command()
@click.argument("scenario", required=False)
@click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Override a key of the scenario; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--out", metavar="DIR", help="Write result.json, requests and steps (CSV) into DIR.")
@click.option("--timeline", metavar="FILE", help="Write the first replication as a trace for ui.perfetto.dev.")
@click.option("--timeline-window", metavar="FROM:TO", help="Only this part of it, in seconds.")
@click.option("--strict", is_flag=True, help="Refuse to leave the calibrated range (exit 3).")
@jobs_option
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
    from ..report.files import write_run
    from ..report.timeline_file import write_timeline
    from .progress import progress_on_stderr
    from .timeline_option import check_timeline

    directory = output_directory(out)
    window_s = check_timeline(timeline, timeline_window, scenario, directory)
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
        written = write_timeline(result, timeline, window_s)
        print(one_line(f"timeline: {timeline}: {written}"), file=sys.stderr)
    if directory is not None:
        write_run(result, directory)
    return printed_json(result.document) if as_json else _screen(result.document)


def _screen(document: dict[str, Any]) -> str:
    from rich.console import Console

    from ..report.terminal import print_answer

    console = Console(highlight=False)
    with console.capture() as capture:
        print_answer(document, console)
    return capture.get()
