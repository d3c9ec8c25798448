"""`specsim sweep`: a grid over any keys of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .one_line import one_line
from .result_options import PIPE_WIDTH, jobs_option, output_directory, printed_json


@click.command()
@click.argument("scenario", required=False)
@click.option("--vary", metavar="PATH=VALUES", multiple=True, help="An axis: a:b, a:b:step, or a,b,c; repeatable.")
@click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Override a key of the scenario; repeatable.")
@click.option("--metric", metavar="NAME", help="Tell the speed-up by it; default: throughput, E2E of open traffic.")
@click.option("--json", "as_json", is_flag=True, help="Print all cells as JSON.")
@click.option("--out", metavar="DIR", help="Keep cells in DIR as they are done, go on from those there.")
@click.option("--parquet", is_flag=True, help="Also write cells.parquet into DIR.")
@jobs_option
@click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster whose scheduler is there.")
def sweep(
    scenario: str | None,
    vary: tuple[str, ...],
    sets: tuple[str, ...],
    metric: str | None,
    as_json: bool,
    out: str | None,
    parquet: bool,
    jobs: int,
    dask: str | None,
) -> str:
    """Run a scenario in every cell of a grid, on the same random numbers.

    SCENARIO as for `specsim run`. Several --vary make all combinations, for example
    --vary speculation.num_speculative_tokens=0:8 --vary workload.arrivals.concurrency=1,4,16,64

    DIR gets sweep.json, cells.csv and one result per cell, which `specsim run` runs again. A sweep that was stopped
    goes on where it was when the command is repeated; several machines may work in one DIR.
    """
    from ..answers.sweep import sweep_scenario
    from ..answers.sweep_document import check_metric
    from ..report.sweep_files import check_parquet, write_sweep
    from .progress import progress_with_time_left

    if parquet and out is None:
        raise click.UsageError("--parquet writes into the directory of --out, which is not given")
    check_metric(metric)
    if parquet:
        check_parquet()
    directory = output_directory(out)
    path = None if scenario is None else Path(scenario)
    try:
        with progress_with_time_left() as progress:
            document = sweep_scenario(
                path, sets, vary, jobs=jobs, dask=dask, directory=directory, metric=metric, progress=progress
            )
    except KeyboardInterrupt:
        _tell_what_is_kept(directory)
        raise
    if directory is not None:
        write_sweep(document, directory, parquet)
    if as_json:
        return printed_json(document)
    return _screen(document)


def _tell_what_is_kept(directory: Path | None) -> None:
    kept = "nothing is kept: give --out DIR to keep cells as they are done"
    if directory is not None:
        done = len(list(directory.glob("cases/*.json")))
        kept = f"{done} cells are kept in {directory}: repeat the command to go on"
    print(one_line(f"interrupted, {kept}"), file=sys.stderr)


def _screen(document: dict[str, Any]) -> str:
    from rich.console import Console

    from ..report.terminal import print_sweep

    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    with console.capture() as capture:
        print_sweep(document, console)
    return capture.get()
