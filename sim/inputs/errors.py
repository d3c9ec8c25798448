"""What goes wrong with a user's input, and how it is told.

SpecsimError                 anything a user can cause and mend: exit 2, no traceback
├── InputError               problems found in files or on the command line, all at once
└── OutsideCalibrationError  the run left the calibrated range under --strict: exit 3
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake: where it is, what it is, the rule it breaks and how to mend it.

    line, column: from 1; line 0 means the whole file. field: a dotted path (`speculation.num_speculative_tokens`).
    """

    file: str
    line: int
    column: int
    field: str
    what: str
    rule: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else f"{self.file}:1:1"
        return f"{place}: {self.field}: {self.what}, {self.rule}, {self.remedy}"


class SpecsimError(Exception):
    """A mistake that the user can mend. The command line turns it into exit 2 without a traceback."""


class InputError(SpecsimError):
    """Every problem found in the input, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__(self.problems)  # as its only argument: pickle and simpy make the error anew from its arguments

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class OutsideCalibrationError(SpecsimError):
    """The simulation needed costs beyond the calibrated range and `--strict` forbids that."""
