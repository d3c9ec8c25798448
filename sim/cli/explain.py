"""`specsim explain`: one step taken apart."""

from __future__ import annotations

from pathlib import Path

import click

MOST_DRAFTS = 64
MOST_BATCH = 100_000
MOST_CONTEXT_TOKENS = 10_000_000


@click.command()
@click.argument("scenario", required=False)
@click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Override a key of the scenario; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the step as JSON.")
@click.option("--arm", metavar="NAME", help="The arm to look at; default: the first that drafts.")
@click.option("--batch", type=click.IntRange(1, MOST_BATCH), help="Decoding requests; default: from the scenario.")
@click.option(
    "--context", metavar="TOKENS", type=click.IntRange(0, MOST_CONTEXT_TOKENS), help="Computed tokens of each request."
)
@click.option("--drafts", type=click.IntRange(0, MOST_DRAFTS), help="Draft tokens each; default: the arm's.")
def explain(
    scenario: str | None,
    sets: tuple[str, ...],
    as_json: bool,
    arm: str | None,
    batch: int | None,
    context: int | None,
    drafts: int | None,
) -> str:
    """Take one step apart: rows, graph mode, ms by part, beside the step without speculation.

    SCENARIO as for `specsim run`.
    """
    from ..answers.explain import explain as explain_step
    from ..report.explain_text import explain_text
    from ..report.json_text import json_text

    path = None if scenario is None else Path(scenario)
    document = explain_step(path, sets, arm=arm, batch=batch, context_tokens=context, drafts=drafts)
    return json_text(document) if as_json else explain_text(document)
