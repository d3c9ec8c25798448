"""Files of recorded lengths: one whole number of tokens a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..inputs.errors import InputError, Problem
from .first_problems import first_problems
from .text_file import read_lines
from .token_counts import TOKEN_COUNT_RULE, token_count


def read_lengths(path: Path) -> NDArray[np.int64]:
    """Lengths in tokens, in the order of the file.

    Raises InputError with the line of every value that is no whole number from 1 up.
    """
    lines = read_lines(path)
    values = [token_count(line) for line in lines]
    problems = [
        Problem(str(path), number, 1, "length", f"{line[:40]!r}", TOKEN_COUNT_RULE, "correct or remove this line")
        for number, (line, value) in enumerate(zip(lines, values, strict=True), start=1)
        if value is None
    ]
    if not lines:
        problems.append(Problem(str(path), 1, 1, "length", "the file is empty", TOKEN_COUNT_RULE, "add lengths"))
    if problems:
        raise InputError(first_problems(problems))
    return np.array(values, dtype=np.int64)
