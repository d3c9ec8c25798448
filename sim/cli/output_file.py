"""Files that a command writes beside its answer: never over what it reads, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def refuse_output(path: str | None, option: str, inputs: Sequence[str | Path]) -> None:
    """Raises InputError where a file to be written is a pipe, a device or a folder, or one of the files read."""
    from ..inputs.errors import InputError, Problem
    from ..inputs.wording import one_line

    what = ""
    try:
        if path is not None and os.path.exists(path):
            if not os.path.isfile(path):
                what, rule = "is no regular file", f"{option} makes a file or replaces one"
            elif any(os.path.exists(one) and os.path.samefile(path, one) for one in inputs):
                what, rule = "is one of the files read", "what is read is never written over"
    except (OSError, ValueError):  # told where it is written
        return
    if what:
        raise InputError([Problem(one_line(str(path)), 1, 1, option, what, rule, "give another path")])


def write_output(text: str, path: Path) -> str:
    """Put the text into a file, whole or not at all, behind a link into what it names; what to say about it."""
    from ..inputs.errors import InputError, Problem
    from ..inputs.wording import one_line

    try:
        target = Path(os.path.realpath(path))
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        what, rule = f"cannot be written ({reason})", "--out must be a file that can be written"
        raise InputError([Problem(one_line(str(path)), 1, 1, "--out", what, rule, "give another path")]) from error
    return f"written: {one_line(str(path))}\n"
