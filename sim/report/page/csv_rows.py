"""Reads columns of the CSV files beside a result, by the names in their header."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...inputs.errors import InputError
from ...inputs.source import Finding, Mark, placed


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[list[str]]:
    """The named columns of each row as text. Raises InputError where the file is not what specsim wrote."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            missing = [name for name in columns if name not in header]
            if missing:
                raise defect(path, 1, f"has no column {missing[0]}")
            places = [header.index(name) for name in columns]
            for row in rows:
                if len(row) != len(header):
                    raise defect(path, rows.line_num, f"has {len(row)} fields instead of {len(header)}")
                yield [row[place] for place in places]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise defect(path, 1, f"cannot be read ({getattr(error, 'strerror', None) or error})") from None


def defect(path: Path, line: int, what: str) -> InputError:
    """The complaint about a file beside the result."""
    rule = "the tables beside a result are as specsim wrote them"
    finding = Finding("table", what, rule, "write them again with --out, or remove the file")
    return InputError([placed(Mark(str(path), line, 1), finding)])
