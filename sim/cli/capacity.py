"""`specsim capacity`: the highest load within the SLO."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .result_options import PIPE_WIDTH, jobs_option, output_directory, printed_json


@click.command()
@click.argument("scenario", required=False)
@click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Override a key of the scenario; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--out", metavar="DIR", help="Write capacity.json into DIR.")
@jobs_option
@click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster whose scheduler is there.")
def capacity(
    scenario: str | None, sets: tuple[str, ...], as_json: bool, out: str | None, jobs: int, dask: str | None
) -> str:
    """Find the highest load that every arm carries within the scenario's `slo`.

    SCENARIO as for `specsim run`. The load is the rate of open arrivals, the concurrency of a closed loop, the scale of
    a trace. The answer says what breaks beyond it, what a token and a successful task cost there, and how many replicas
    the scenario's own load takes.
    """
    from ..answers.capacity import capacity as find_capacity
    from ..report.files import write_document
    from .progress import progress_with_time_left

    directory = output_directory(out)
    with progress_with_time_left() as progress:
        document = find_capacity(
            None if scenario is None else Path(scenario), sets, jobs=jobs, dask=dask, progress=progress
        )
    if directory is not None:
        write_document(document, directory / "capacity.json")
    if as_json:
        return printed_json(document)
    return _screen(document)


def _screen(document: dict[str, Any]) -> str:
    from rich.console import Console

    from ..report.terminal import print_capacity

    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    with console.capture() as capture:
        print_capacity(document, console)
    return capture.get()
