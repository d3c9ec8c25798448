"""Logs of accepted draft tokens: one JSON object a line, one line a sequence (a request, or one turn of it).

Per round (what engines log):

    {"request_id": 81, "category": "math", "turn": 0, "k": 6, "accepted": [2, 0, 6, 1]}

`accepted`: draft tokens accepted in each round, the bonus token not counted. `k`: drafts of a round, a whole number, a
list with one entry a round, or null where it is not known. vLLM's responses with detailed metrics
(`metrics.speculative_decoding.per_step_accepted`, `per_step_drafted`) are read as well.

Per output position (exact at every draft length):

    {"request_id": 81, "category": "math", "k": 20, "accepted_at": [0, 3, 2, 1, 0], "drafted_at": [20, 20, 20, 20, 20]}

Entry p: how many of the drafts in a row would be accepted, were they to start at output token p (from 0), and how many
would be drafted there (left out: always `k`). `k`: the largest run that the log can tell, default the largest in it.

`request_id`, `category`, `turn` are optional; other keys are ignored. Files may be gzipped and have CRLF line ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inputs.errors import InputError, Problem
from ..inputs.source import Finding, Mark, placed
from ..inputs.wording import shown
from .first_problems import first_problems
from .text_file import read_lines

Ints = NDArray[np.int64]

MOST_DRAFTS = 255  # of a round; acceptance is kept in bytes
_COUNTS = f"is no list of whole numbers from 0 to {MOST_DRAFTS}"


@dataclass(frozen=True, slots=True)
class LogSequence:
    """One sequence. accepted, drafted: by round, or by output position; drafted is None where it is not known."""

    request_id: str
    category: str | None
    accepted: Ints
    drafted: Ints | None

    def output_tokens(self, *, by_position: bool) -> int:
        """Its output: the positions, or the token of the prefill and those of all rounds."""
        return len(self.accepted) if by_position else 1 + int(self.accepted.sum()) + len(self.accepted)


@dataclass(frozen=True, slots=True)
class AcceptanceLog:
    """All sequences of a file, in its order.

    by_position: entries are output positions, else rounds. k: the same draft length in every round, or the largest run
    that a log by position can tell; None where it changes or is not known.
    """

    file: str
    by_position: bool
    sequences: tuple[LogSequence, ...]
    k: int | None

    @property
    def categories(self) -> list[str]:
        """Names of the categories, in the order in which they come up."""
        return list(dict.fromkeys(one.category for one in self.sequences if one.category is not None))

    @property
    def deepest(self) -> int | None:
        """The largest draft length in the log, as far as it tells draft lengths."""
        if self.k is not None:
            return self.k
        return max((int(one.drafted.max()) for one in self.sequences if one.drafted is not None), default=None)

    def of_task(self, task: str | None) -> list[LogSequence]:
        """The sequences of one category; all of them for None."""
        return [one for one in self.sequences if task is None or one.category == task]


def read_acceptance_log(path: Path) -> AcceptanceLog:
    """Read a log of any form above. Raises InputError with file, line and column of everything that is wrong in it."""
    file = str(path)
    lines = read_lines(path)
    problems: list[Problem] = []
    read: list[tuple[_Line, LogSequence, bool, int | None]] = []
    for line in _objects(lines, file, problems):
        found = _sequence(line, problems)
        if found is not None:
            read.append((line, *found))
    if not lines or (not read and not problems):
        problems.append(_problem(file, 1, 1, "file", "holds no sequence", "add one JSON object a line"))
    for line, _, by_position, _ in read:
        if by_position != read[0][2]:
            what = (
                "has entries by position, the first line by round" if by_position else "has rounds, the first positions"
            )
            problems.append(line.problem("accepted_at" if by_position else "accepted", what, "write two files"))
    if problems:
        raise InputError(first_problems(problems))
    by_position = read[0][2]
    lengths = {k for _, _, _, k in read}
    longest = max((k for k in lengths if k is not None), default=None)
    is_one = by_position or len(lengths) == 1  # by position, k is how far the log can tell
    return AcceptanceLog(file, by_position, tuple(one for _, one, _, _ in read), longest if is_one else None)


@dataclass(frozen=True, slots=True)
class _Line:
    """One object and where it stands."""

    file: str
    number: int
    text: str
    data: dict[str, Any]

    def problem(self, key: str, what: str, remedy: str) -> Problem:
        """A problem at a key of this line, or at its start where the key is not in it."""
        column = self.text.find(f'"{key}"') + 1
        return _problem(self.file, self.number, max(column, 1), key, what, remedy)


def _problem(file: str, line: int, column: int, field: str, what: str, remedy: str) -> Problem:
    rule = "a log has one JSON object a line, with `accepted` by round or `accepted_at` by position"
    return placed(Mark(file, line, column), Finding(field, what, rule, remedy))


def _objects(lines: list[str], file: str, problems: list[Problem]) -> list[_Line]:
    """The object of every line. A file that is one object over many lines is one line."""
    if len(lines) > 1 and _is_opened_only(lines[0]):
        lines = ["\n".join(lines)]
    found = []
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            problems.append(_problem(file, number, 1, "line", "is empty", "remove it"))
            continue
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            at = (number + error.lineno - 1, error.colno)
            problems.append(_problem(file, *at, "line", f"is no JSON ({error.msg})", "correct or remove this line"))
            continue
        except (ValueError, RecursionError):
            problems.append(_problem(file, number, 1, "line", "is no JSON that can be read", "correct or remove it"))
            continue
        if not isinstance(data, dict):
            problems.append(_problem(file, number, 1, "line", f"is {shown(data)}, no object", "correct or remove it"))
            continue
        found.append(_Line(file, number, text, data))
    return found


def _is_opened_only(line: str) -> bool:
    """Whether a first line starts an object that ends on a later line."""
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return line.lstrip().startswith("{") and error.pos >= len(line.rstrip())
    except (ValueError, RecursionError):
        pass
    return False


def _sequence(line: _Line, problems: list[Problem]) -> tuple[LogSequence, bool, int | None] | None:
    """The sequence of a line, whether it is by position, and its k."""
    data = _engine_metrics(line.data) or line.data
    by_position = "accepted_at" in data
    key, drafted_key = ("accepted_at", "drafted_at") if by_position else ("accepted", "k")
    accepted = _counts(data.get(key))
    if accepted is None or not len(accepted):
        what = "is missing" if key not in data else "is empty" if accepted is not None else _COUNTS
        problems.append(line.problem(key, what, "correct or remove this line"))
        return None
    drafted: Ints | None = None
    k = data.get("k")
    if isinstance(k, int) and not isinstance(k, bool) and 1 <= k <= MOST_DRAFTS:
        drafted = None if by_position else np.full(len(accepted), k)
    elif isinstance(k, list) and not by_position:
        drafted, k = _counts(k), None
        if drafted is None:
            problems.append(line.problem("k", _COUNTS, "give the drafts of every round"))
            return None
    elif k is not None:
        problems.append(line.problem("k", f"{shown(k)} is no draft length", f"give 1 to {MOST_DRAFTS}, or null"))
        return None
    if by_position and "drafted_at" in data:
        drafted = _counts(data["drafted_at"])
        if drafted is None:
            problems.append(line.problem("drafted_at", _COUNTS, "correct it or leave it out"))
            return None
    if drafted is not None and not _fits(line, drafted_key, accepted, drafted, problems):
        return None
    if by_position:
        k = max(int(accepted.max()), 1) if k is None else k
        if accepted.max() > k:
            problems.append(
                line.problem("k", f"{k} with a run of {accepted.max()}", "give the largest run it can tell")
            )
            return None
    category = data.get("category")
    return (
        LogSequence(str(data.get("request_id")), category if isinstance(category, str) else None, accepted, drafted),
        by_position,
        k,
    )


def _fits(line: _Line, key: str, accepted: Ints, drafted: Ints, problems: list[Problem]) -> bool:
    """Whether every entry has its drafts, and none accepts more than were drafted."""
    if len(drafted) != len(accepted):
        what = f"has {len(drafted)} entries for {len(accepted)}"
        problems.append(line.problem(key, what, "give one for each"))
        return False
    worse = np.flatnonzero(accepted > drafted)
    if len(worse):
        what = f"entry {worse[0] + 1}: {accepted[worse[0]]} of {drafted[worse[0]]} drafts are accepted"
        problems.append(line.problem(key, what, "accepted tokens are among the drafted ones, correct one of them"))
        return False
    return True


def _counts(value: Any) -> Ints | None:
    if not isinstance(value, list) or not all(type(one) is int and 0 <= one <= MOST_DRAFTS for one in value):
        return None
    return np.array(value, dtype=np.int64)


def _engine_metrics(data: dict[str, Any]) -> dict[str, Any] | None:
    """vLLM's response with detailed metrics in the form of a line of a log; None where it is no such response."""
    metrics = data.get("metrics")
    speculative = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    if not isinstance(speculative, dict) or "per_step_accepted" not in speculative:
        return None
    drafted = speculative.get("per_step_drafted")
    if (
        isinstance(drafted, list)
        and len(set(map(str, drafted))) == 1
        and drafted == [speculative.get("num_spec_tokens")] * len(drafted)
    ):
        drafted = speculative.get("num_spec_tokens")
    return {"request_id": data.get("id"), "accepted": speculative["per_step_accepted"], "k": drafted}
