"""How a rule of the workload says where in the scenario it was broken."""

from __future__ import annotations

from collections.abc import Callable

from ..inputs.errors import Problem

ProblemAt = Callable[[str, str, str, str], Problem]
"""Makes the Problem of a scenario field: (field, what, rule, remedy)."""


def without_position(field: str, what: str, rule: str, remedy: str) -> Problem:
    """For scenarios that come from no file."""
    return Problem("scenario", 0, 0, field, what, rule, remedy)
