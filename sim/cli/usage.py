"""click's own complaints in the form of every other mistake: file:line:column: field: what, the rule, the remedy."""

from __future__ import annotations

import click

from ..inputs.errors import Problem


def usage_problem(error: click.UsageError) -> Problem:
    """A mistake on the command line. The "file" is the command; line and column are 1."""
    command = error.ctx.command_path if error.ctx else "specsim"
    rule = "the command line must fit the usage"
    close = getattr(error, "possibilities", None)
    remedy = f"did you mean {' or '.join(close)}?" if close else f"see `{command} --help`"
    if isinstance(error, click.BadParameter) and error.param is not None:
        field, rule = max(error.param.opts, key=len), "the value must be of the option's type"
    else:
        field = getattr(error, "option_name", None) or getattr(error, "command_name", None) or "command line"
    return Problem(command, 1, 1, field, error.message.rstrip("."), rule, remedy)
