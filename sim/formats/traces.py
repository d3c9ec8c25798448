"""Request traces of every known format, read once per process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ..inputs.errors import InputError, Problem
from ..inputs.scenario import TraceColumnMap
from ..inputs.wording import listed, one_line
from .csv_cells import CsvCells, header_fields
from .json_cells import JsonCells, is_json_object, json_keys
from .text_file import read_lines
from .trace_columns import TraceColumns
from .trace_table import read_table

AUTO = "auto"
CSV_FORMATS = {
    "azure": TraceColumnMap(
        arrival="TIMESTAMP", prompt_tokens="ContextTokens", output_tokens="GeneratedTokens", arrival_unit="date"
    ),
    "vidur": TraceColumnMap(
        arrival="arrived_at", prompt_tokens="num_prefill_tokens", output_tokens="num_decode_tokens", arrival_unit="s"
    ),
}
JSON_FORMATS = {
    "mooncake": TraceColumnMap(
        arrival="timestamp",
        prompt_tokens="input_length",
        output_tokens="output_length",
        arrival_unit="ms",
        hash_ids="hash_ids",
        hash_block_tokens=512,
    ),
}
FORMATS = {**CSV_FORMATS, **JSON_FORMATS}
OPTIONAL = {"arrived_at", "hash_ids"}  # columns of the known formats that a file may lack as a whole


def read_trace(path: Path, trace_format: str = AUTO, columns: TraceColumnMap | None = None) -> TraceColumns:
    """Arrivals and lengths of a trace file; `auto` tells the format by the first line.

    columns: what the columns of a file of no known format are called (`auto`, `csv` and `jsonl`).
    Raises InputError if the file cannot be read, its format is unknown or a row is broken.
    """
    try:
        status = path.stat()
        version = status.st_mtime_ns, status.st_size
    except (OSError, ValueError):
        version = 0, 0  # reading it says what is wrong
    return _parse_once(path, trace_format, columns, version)


@lru_cache(maxsize=4)
def _parse_once(
    path: Path, trace_format: str, columns: TraceColumnMap | None, _version: tuple[int, int]
) -> TraceColumns:
    lines = read_lines(path)
    if not lines:
        rule = "a trace has at least one request"
        raise InputError([Problem(str(path), 1, 1, "header", "the file is empty", rule, "use another file")])
    as_json = trace_format in (*JSON_FORMATS, "jsonl") if trace_format != AUTO else is_json_object(lines[0])
    known = json_keys(lines[0]) if as_json else header_fields(lines[0])
    if known is None:  # reading the first line says how it is broken
        names = columns or JSON_FORMATS["mooncake"]
    else:
        if columns is None and trace_format == AUTO:
            trace_format = _detected(path, lines[0], known, as_json)
        names = _present(path, columns or FORMATS[trace_format], known, as_json, trace_format)
    wanted = [name for name in _roles(names).values() if name]
    return read_table(path, lines, (JsonCells if as_json else CsvCells)(str(path), lines, wanted), names)


def _roles(names: TraceColumnMap) -> dict[str, str | None]:
    """Column names by what they hold."""
    return {role: getattr(names, role) for role in ("arrival", "prompt_tokens", "output_tokens", "hash_ids")}


def _detected(path: Path, header: str, known: Sequence[str], as_json: bool) -> str:
    for trace_format, names in (JSON_FORMATS if as_json else CSV_FORMATS).items():
        if all(name in known for name in _roles(names).values() if name and name not in OPTIONAL):
            return trace_format
    spelled = "; ".join(f"{name} has {', '.join(filter(None, _roles(of).values()))}" for name, of in FORMATS.items())
    what = f"the first line {one_line(header, 80)!r} belongs to no known trace format"
    remedy = "say in `columns` which of them hold arrival, prompt_tokens and output_tokens"
    raise InputError([Problem(str(path), 1, 1, "header", what, f"the first line tells the format ({spelled})", remedy)])


def _present(
    path: Path, names: TraceColumnMap, known: Sequence[str], as_json: bool, trace_format: str
) -> TraceColumnMap:
    """The names that the file has; optional ones of a known format may be absent, all others are mistakes."""
    roles = _roles(names)
    absent = {role: name for role, name in roles.items() if name and name not in known}
    missing = {role: name for role, name in absent.items() if trace_format not in FORMATS or name not in OPTIONAL}
    if missing:
        what = f"{'the first line' if as_json else 'the header'} lacks {', '.join(missing.values())}"
        rule = f"it has {one_line(listed(known), 300)}"
        remedy = "correct the names in `columns`" if trace_format not in FORMATS else "use another format"
        raise InputError([Problem(str(path), 1, 1, name, what, rule, remedy) for name in list(missing.values())[:1]])
    twice = [name for name in roles.values() if name and not as_json and known.count(name) > 1]
    if twice:
        what, rule = f"the header has {twice[0]} {known.count(twice[0])} times", "a column has one name"
        raise InputError([Problem(str(path), 1, 1, twice[0], what, rule, "rename or remove one of them")])
    return names.model_copy(update=dict.fromkeys(absent))
