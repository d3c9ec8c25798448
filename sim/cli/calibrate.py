"""`specsim calibrate`: look inside calibrations, and make them."""

from __future__ import annotations

from pathlib import Path

import click

from .calibrate_analytic import analytic
from .output_file import refuse_output


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def calibrate(context: click.Context) -> str | None:
    """List, show and make calibrations: what a step costs."""
    return None if context.invoked_subcommand else f"{context.get_help()}\n"


@calibrate.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_calibrations(as_json: bool) -> str:
    """List the shipped calibrations."""
    from ..answers.look import listed_calibrations
    from ..report.json_text import json_text
    from ..report.look_text import list_text

    entries = listed_calibrations()
    return json_text({"calibrations": entries}) if as_json else list_text(entries)


@calibrate.command("show")
@click.argument("reference", metavar="NAME|FILE")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option("--plot", metavar="FILE.png", help="Also draw step time against rows (needs matplotlib).")
def show_calibration(reference: str, as_json: bool, plot: str | None) -> str:
    """Show one calibration: provenance, terms, additivity, memory, stairs."""
    from ..answers.look import shown_calibration
    from ..report.json_text import json_text
    from ..report.look_text import show_text
    from ..report.step_plot import write_step_plot

    document = shown_calibration(reference)
    if plot is not None:
        refuse_output(plot, "--plot", [document["file"]])
        write_step_plot(document, Path(plot))
    return json_text(document) if as_json else show_text(document)


calibrate.add_command(analytic)
