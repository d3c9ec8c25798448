"""`specsim report`: a result as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("result")
@click.option("--out", metavar="FILE", help="The page; default: report.html beside the result.")
def report(result: str, out: str | None) -> str:
    """Make one HTML page of a result: figures, tables, definitions; it opens without network or server.

    RESULT is the JSON of run, sweep, tune or capacity, or the folder that --out filled: then the page has whole latency
    distributions and the queue, batch and KV blocks over time. Prints the path of the page.
    """
    from ..report.page.write import write_page

    if result == "" or out == "":
        raise click.BadParameter("the file has no name", param_hint="--out" if out == "" else "RESULT")
    return f"{write_page(Path(result), None if out is None else Path(out))}\n"
