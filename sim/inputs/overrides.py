"""`--set path=value`: changes to the data of a scenario before it is checked.

A path is dotted, with numbers for list entries (`workload.slices.0.share`). Below `arms.NAME` the rest of the path is
one key, as in the file. Mappings that are not there yet are made; whether they may be there is checked with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import InputError
from .source import Finding, Mark, Source, placed
from .wording import shown
from .yaml_text import parse_value

_RULE = "an override is path=value"


def apply_sets(source: Source, sets: Sequence[str]) -> Source:
    """A source with every override applied, in order; what cannot be applied joins its problems."""
    data: dict[str, Any] = _copied(source.data)
    marks, keys, problems = dict(source.marks), dict(source.keys), list(source.problems)
    for text in sets:
        file = " ".join(f"--set {text}".split())[:100]
        try:
            new = _parsed(text, file)
        except InputError as error:
            problems.extend(error.problems)
            continue
        problems.extend(new.problems)
        [(path, value)] = new.data.items()
        parts = _parts(path)
        mistake = _put(data, parts, value)
        if mistake:
            problems.append(placed(Mark(file, 1, 1), Finding(path, *mistake)))
            continue
        _move_marks(parts, new, marks, keys)
    return Source(source.file, source.base_dir, data, marks, keys, problems)


def _parsed(text: str, file: str) -> Source:
    path, equals, value = text.partition("=")
    path = path.strip()
    column = len(path) + 2
    if not equals or not path or not all(path.split(".")):
        what = "no = in it" if not equals else f"{shown(path)} is no path"
        finding = Finding("--set", what, _RULE, "write for example engine.max_num_seqs=64")
        raise InputError([placed(Mark(file, 1, 1), finding)])
    return parse_value(value, file, path, column)


def _parts(path: str) -> list[str]:
    """`arms.k5.engine.max_num_seqs` is three parts: what follows the arm's name is one key of the arm."""
    parts = path.split(".")
    return [*parts[:2], ".".join(parts[2:])] if parts[0] == "arms" and len(parts) > 3 else parts


def _put(data: dict[str, Any], parts: list[str], value: Any) -> tuple[str, str, str] | None:
    """Put the value in place; what is wrong (what, rule, remedy) if there is no such place."""
    here: Any = data
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        if isinstance(here, dict):
            if last:
                here[part] = value
            elif here.get(part) is None:
                here[part] = {}
            here = here[part]
        elif isinstance(here, list):
            if not part.isdecimal() or len(part) > 9 or int(part) >= len(here):
                what = f"{part!r} is no entry of {'.'.join(parts[:depth])}"
                remedy = f"give a number from 0 to {len(here) - 1}" if here else "the list is empty: set it whole"
                return what, f"the list has {len(here)} entries, counted from 0", remedy
            if last:
                here[int(part)] = value
            here = here[int(part)]
        else:
            above = ".".join(parts[:depth])
            return f"{above} is {shown(here)}", "only a mapping has keys", f"set {above} as a whole"
    return None


def _move_marks(parts: list[str], new: Source, marks: dict[str, Mark], keys: dict[str, Mark]) -> None:
    """The places of everything at and below the path are now in the override."""
    path = ".".join(parts)
    for places in (marks, keys):
        for old in [old for old in places if old == path or old.startswith(path + ".")]:
            del places[old]
    marks.update(new.marks)
    keys.update(new.keys)
    column = 1
    for depth, part in enumerate(parts):
        above = ".".join(parts[: depth + 1])
        here = Mark(new.marks[path].file, 1, column)
        keys.setdefault(above, here)
        marks.setdefault(above, here)
        column += len(part) + 1


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
