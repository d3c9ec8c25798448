"""Text files of other tools: plain or gzip (told by content), UTF-8 with or without a byte order mark."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from ..inputs.errors import InputError, Problem
from ..inputs.numbers import MAX_REQUESTS
from ..inputs.source import decode, read_bytes

MAX_BYTES = 1 << 30
MAX_LINES = MAX_REQUESTS + 100  # a header and some blank lines beside the rows
_GZIP_MAGIC = b"\x1f\x8b"


def read_lines(path: Path) -> list[str]:
    """The lines of a file without their ends (LF or CRLF) and without blank lines after the last one.

    Raises InputError if the file cannot be read, unpacked or decoded.
    """
    content = read_bytes(path, MAX_BYTES)
    if content.startswith(_GZIP_MAGIC):
        content = _unpacked(content, path)
    if content.count(b"\n") > MAX_LINES:
        rule, remedy = f"at most {MAX_LINES} are read", "check that it is the right file, or cut it"
        raise InputError([Problem(str(path), 1, 1, "file", "more lines than that", rule, remedy)])
    lines = [line.removesuffix("\r") for line in decode(content, str(path)).split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _unpacked(content: bytes, path: Path) -> bytes:
    rule, remedy = f"a gzip file unpacks to at most {MAX_BYTES} bytes", "pack or download it again"
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            unpacked = stream.read(MAX_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError([Problem(str(path), 1, 1, "file", f"damaged gzip data ({error})", rule, remedy)]) from error
    if len(unpacked) > MAX_BYTES:
        raise InputError([Problem(str(path), 1, 1, "file", "more data than that", rule, "cut the file")])
    return unpacked
