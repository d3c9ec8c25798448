"""Reads the result that a page is made of, and says what is wrong with a file that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from ...inputs.errors import InputError
from ...inputs.source import Finding, Mark, decode, placed, read_bytes
from ...inputs.wording import shown

MAX_RESULT_BYTES = 512_000_000
RESULT_NAMES = ("result.json", "sweep.json", "tune.json", "capacity.json")


def read_result(path: Path, schemas: tuple[str, ...]) -> dict[str, Any]:
    """A result document with one of the schemas. Raises InputError."""
    file = str(path)
    text = decode(read_bytes(path, MAX_RESULT_BYTES), file)
    try:
        document = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        mark = Mark(file, error.lineno, error.colno)
        finding = Finding("result", f"is no JSON: {error.msg}", "a result is one JSON object", "make it again")
        raise InputError([placed(mark, finding)]) from None
    except RecursionError:
        refuse(path, "is nested too deeply")
    except ValueError as error:
        refuse(path, str(error))
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema not in schemas:
        what = "has no schema" if schema is None else f"has the schema {shown(schema)}"
        refuse(
            path,
            what,
            f"pages are made of {', '.join(schemas)}",
            "name the JSON result of run, sweep, tune or capacity",
        )
    return dict(document)


def refuse(
    path: Path,
    what: str,
    rule: str = "a result is what specsim wrote, unchanged",
    remedy: str = "make it again with this version of specsim",
) -> NoReturn:
    """Raise InputError for the whole file."""
    raise InputError([placed(Mark(str(path), 1, 1), Finding("result", what, rule, remedy))])


def result_path(path: Path) -> Path:
    """The result that a path names: a file, or the folder that `--out` filled. InputError if it has several."""
    if not path.is_dir():
        return path
    found = [path / name for name in RESULT_NAMES if (path / name).is_file()]
    if len(found) > 1:
        names = " and ".join(one.name for one in found)
        refuse(path, f"the folder holds {names}", "a page is made of one result", "name the file in it")
    return found[0] if found else path / RESULT_NAMES[0]


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is no JSON")
