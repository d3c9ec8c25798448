"""`specsim tune`: which draft length at which load, and the flags that set it."""

from __future__ import annotations

from pathlib import Path

import click

from .result_options import jobs_option, output_directory, printed_json

MOST_DRAFTS = 64
MOST_BATCHES = 64
MOST_REPLICATIONS = 1000


class Batches(click.ParamType):  # type: ignore[type-arg]  # not generic at run time in every release
    """Whole numbers from 1, with commas between them."""

    name = "batches"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> list[int]:
        """The numbers as they were given."""
        parts = [part.strip() for part in value.split(",")]
        if not all(part.isascii() and part.isdigit() and len(part) <= 7 and int(part) for part in parts):
            self.fail(f"{value!r} is no list of whole numbers from 1, such as 1,16,64", param, context)
        if len(parts) > MOST_BATCHES:
            self.fail(f"{len(parts)} batch sizes, at most {MOST_BATCHES}", param, context)
        return [int(part) for part in parts]


@click.command()
@click.argument("scenario", required=False)
@click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Override a key of the scenario; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--out", metavar="DIR", help="Write tune.json into DIR.")
@click.option("--batch", metavar="N,N,..", type=Batches(), help="Loads to simulate; default: 1,2,4,.. to max_num_seqs.")
@click.option(
    "--drafts", type=click.IntRange(1, MOST_DRAFTS), help="Longest draft to try; default: as far as measured."
)
@click.option(
    "--replications",
    type=click.IntRange(2, MOST_REPLICATIONS),
    help="Of every load; default: the scenario's, at least 5.",
)
@jobs_option
def tune(
    scenario: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    out: str | None,
    batch: list[int] | None,
    drafts: int | None,
    replications: int | None,
    jobs: int,
) -> str:
    """Find the best draft length by load and slice, and print engine flags.

    Simulates closed loads of so many users with every draft length, for the mix of slices and for each slice alone;
    then the scenario's own traffic with no speculation, every fixed length, a schedule and a goodput policy.

    SCENARIO as for `specsim run`.
    """
    from ..answers.tune import tune_scenario
    from ..report.files import write_document
    from ..report.tune_text import tune_text
    from .progress import progress_on_stderr

    directory = output_directory(out)
    with progress_on_stderr() as progress:
        document = tune_scenario(
            None if scenario is None else Path(scenario),
            sets,
            batches=batch,
            most_drafts=drafts,
            replications=replications,
            jobs=jobs,
            progress=progress,
        )
    if directory is not None:
        write_document(document, directory / "tune.json")
    return printed_json(document) if as_json else tune_text(document)
