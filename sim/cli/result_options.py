"""What commands that give a result share: processes, a directory for files, and the result as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .one_line import one_line

MAX_JOBS = 1024
PIPE_WIDTH = 120  # columns, where no terminal says how many there are

jobs_option = click.option(
    "--jobs", type=click.IntRange(1, MAX_JOBS), default=1, show_default=True, help="Processes to use."
)


def output_directory(out: str | None) -> Path | None:
    """The directory of --out, made before any work is done. Raises InputError if nothing can be written there."""
    from ..report.files import make_directory

    if out is None:
        return None
    if out == "":
        raise click.BadParameter("the directory has no name", param_hint="--out")
    make_directory(Path(out))
    return Path(out)


def printed_json(document: dict[str, Any]) -> str:
    """The document; its warnings, which nobody sees in a pipe, also go to stderr."""
    from ..report.json_text import json_text

    for warning in document["warnings"]:
        print(one_line(f"warning: {warning}"), file=sys.stderr)
    return json_text(document)
