"""`specsim acceptance`: look inside acceptance profiles, and fit them to logs."""

from __future__ import annotations

from pathlib import Path

import click

from .output_file import refuse_output, write_output


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def acceptance(context: click.Context) -> str | None:
    """List, show and fit acceptance profiles: which draft tokens are accepted."""
    return None if context.invoked_subcommand else f"{context.get_help()}\n"


@acceptance.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_profiles(as_json: bool) -> str:
    """List the shipped profiles and their tasks."""
    from ..answers.acceptance_look import listed_profiles
    from ..report.acceptance_text import list_text
    from ..report.json_text import json_text

    entries = listed_profiles()
    return json_text({"profiles": entries}) if as_json else list_text(entries)


@acceptance.command("show")
@click.argument("reference", metavar="NAME|FILE")
@click.option("--task", metavar="TASK", help="One task of the profile; default: all together.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def show_profile(reference: str, task: str | None, as_json: bool) -> str:
    """Show one profile: survival, conditional acceptance, spread over requests, memory, other draft lengths."""
    from ..answers.acceptance_look import shown_profile
    from ..report.acceptance_text import show_text
    from ..report.json_text import json_text

    document = shown_profile(reference, task)
    return json_text(document) if as_json else show_text(document)


@acceptance.command("fit")
@click.argument("file")
@click.option("--out", metavar="FILE", help="Write the profile to FILE.")
@click.option("--name", help="Name of the profile; by default that of the file.")
@click.option("--tree", is_flag=True, help="The drafts of the log were trees, their best branch is what it counts.")
@click.option("--task", metavar="TASK", help="Show this category of the log; default: all together.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def fit_log(file: str, out: str | None, name: str | None, tree: bool, task: str | None, as_json: bool) -> str:
    """Fit a profile to a log of accepted drafts, by round or by output position; a category of the log is a task.

    Without --out it is only shown.
    """
    from ..answers.acceptance_look import fitted_profile, look_at
    from ..report.acceptance_text import show_text
    from ..report.json_text import json_text
    from ..report.profile_json import profile_json

    refuse_output(out, "--out", [file])
    profile = fitted_profile(Path(file), name, tree=tree)
    document = look_at(profile, task, file)
    written = "" if out is None else write_output(profile_json(profile), Path(out))
    return json_text(document) if as_json else show_text(document) + written
