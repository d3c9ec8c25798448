"""`--timeline FILE --timeline-window FROM:TO`: what they ask for, and whether it can be had."""

from __future__ import annotations

import math
from pathlib import Path

from ..inputs.errors import InputError, Problem
from ..inputs.wording import shown
from ..report.timeline_file import WHOLE_RUN_S, check_timeline_file


def check_timeline(file: str | None, window: str | None, scenario: str | None, out: Path | None) -> tuple[float, float]:
    """The window in seconds. Raises InputError before anything has run if no such timeline can be written.

    scenario, out: where the run reads and writes besides, as on the command line.
    """
    if file is None:
        if window is not None:
            raise _problem("--timeline-window", "there is no --timeline", "it is a part of one", "name its FILE")
        return WHOLE_RUN_S
    if file == "":
        raise _problem("--timeline", "the file has no name", "--timeline makes a file or replaces one", "name it")
    seconds = WHOLE_RUN_S if window is None else _seconds(window)
    own = [] if scenario is None else [Path(scenario)]
    check_timeline_file(file, own if out is None else [*own, *_files_of(out, Path(file).name)])
    return seconds


def _files_of(out: Path, name: str) -> list[Path]:
    """The files in DIR that `--out` writes or removes, of the tables only the one of this name."""
    is_table = name.startswith(("requests-", "steps-")) and name.endswith(".csv")
    return [out / "result.json", *([out / name] if is_table else [])]


def _seconds(window: str) -> tuple[float, float]:
    """FROM:TO; either may be left out."""
    first, colon, last = window.partition(":")
    try:
        seconds = (float(first or WHOLE_RUN_S[0]), float(last or WHOLE_RUN_S[1]))
    except ValueError:
        seconds = (math.nan, math.nan)
    if not (colon and 0 <= seconds[0] < seconds[1]):
        what, rule = f"{shown(window)} is no window", "it is FROM:TO in seconds with FROM before TO"
        raise _problem("--timeline-window", what, rule, "write it as 10:12.5, 10: or :12.5")
    return seconds


def _problem(option: str, what: str, rule: str, remedy: str) -> InputError:
    return InputError([Problem("specsim run", 1, 1, option, what, rule, remedy)])
