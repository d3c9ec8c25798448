"""Request traces of every known format, read once per process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..inputs.errors import InputError, Problem
from .azure_trace import is_azure_header, read_azure_trace
from .text_file import read_lines
from .trace_columns import TraceColumns

READERS = {"azure": read_azure_trace}


def read_trace(path: Path, trace_format: str = "auto") -> TraceColumns:
    """Arrivals and lengths of a trace file; `auto` tells the format by the first line.

    Raises InputError if the file cannot be read, its format is unknown or a row is broken.
    """
    try:
        status = path.stat()
        version = status.st_mtime_ns, status.st_size
    except (OSError, ValueError):
        version = 0, 0  # reading it says what is wrong
    return _parse_once(path, trace_format, version)


@lru_cache(maxsize=4)
def _parse_once(path: Path, trace_format: str, _version: tuple[int, int]) -> TraceColumns:
    lines = read_lines(path)
    if trace_format == "auto":
        trace_format = _detect(path, lines)
    return READERS[trace_format](path, lines)


def _detect(path: Path, lines: list[str]) -> str:
    header = lines[0] if lines else ""
    if is_azure_header(header):
        return "azure"
    what = f"the first line {header[:80]!r} belongs to no known trace format" if header else "the file is empty"
    rule = "the first line tells the format: azure has TIMESTAMP,ContextTokens,GeneratedTokens"
    raise InputError([Problem(str(path), 1, 1, "header", what, rule, "use a trace in a known format")])
