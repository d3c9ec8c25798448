"""The files of a sweep: sweep.json, cells.csv and, on request, cells.parquet; one row for each cell and arm."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from ..inputs.errors import InputError, Problem
from .files import write_bytes
from .json_text import json_text

Row = dict[str, Any]


def write_sweep(document: dict[str, Any], directory: Path, parquet: bool) -> None:
    """Each file appears whole or not at all, sweep.json last. Raises InputError where one cannot be written."""
    rows = flat_rows(document)
    files = {"cells.csv": csv_text(rows).encode()}
    if parquet:
        files["cells.parquet"] = _parquet(rows)
    files["sweep.json"] = json_text(document).encode()
    for name, content in files.items():
        write_bytes(content, directory / name)


def check_parquet() -> None:
    """Raises InputError if Parquet cannot be written here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        rule, remedy = "--parquet needs the package pyarrow", "install the extra: specsim-llm[parquet]"
        problem = Problem("specsim sweep", 1, 1, "--parquet", "no pyarrow is installed", rule, remedy)
        raise InputError([problem]) from None


def flat_rows(document: dict[str, Any]) -> list[Row]:
    """The values of the axes, the case, and every number of an arm: `cost.usd_per_request`, `ci.mean_tpot_ms.low`."""
    rows = []
    for cell in document["cells"]:
        for name, arm in cell["arms"].items():
            row: Row = {path: _plain(value) for path, value in cell["values"].items()}
            row |= {"case": cell["case"], "arm": name}
            speedup = cell["speedup"].get(name, {})
            row |= {f"speedup.{key}": speedup.get(key) for key in ("ratio", "low", "high", "verdict")}
            row |= _flat({key: value for key, value in arm.items() if key not in ("slices", "marginal")}, "")
            rows.append(row)
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column) for column in columns} for row in rows]


def csv_text(rows: list[Row]) -> str:
    """One header line; an empty field where there is no value."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _flat(value: dict[str, Any], above: str) -> Row:
    row: Row = {}
    for key, item in value.items():
        if isinstance(item, dict):
            row |= _flat(item, f"{above}{key}.")
        elif above == "ci." and isinstance(item, list):
            row |= {f"{above}{key}.low": item[0], f"{above}{key}.high": item[1]}
        elif not isinstance(item, list):
            row[f"{above}{key}"] = item
    return {name: item for name, item in row.items() if name not in ("ci", "cost", "graph_mode_share", "time_share")}


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _parquet(rows: list[Row]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    columns = {name: _column([row[name] for row in rows]) for name in rows[0]}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _column(values: list[Any]) -> list[Any]:
    """One type a column: numbers of both kinds become floats, anything else beside them text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    return values
