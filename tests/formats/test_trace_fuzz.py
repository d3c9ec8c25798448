"""Traces with bytes changed at random: a valid trace or an error with a place, never anything else."""

from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_files import FILES

from sim.formats.traces import read_trace
from sim.inputs.errors import InputError
from sim.inputs.numbers import MAX_TOKENS

TOLD = re.compile(r".+:\d+:\d+: .+: .+, .+, .+")
PIECES = [
    b",",
    b"\n",
    b"\r\n",
    b'"',
    b"{",
    b"}",
    b"[",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"NaN",
    b"-",
    b"1e400",
]
EDIT = st.tuples(
    st.integers(0, 400), st.integers(0, 40), st.one_of(st.binary(max_size=6), st.sampled_from(PIECES))
)  # at a place, some bytes are replaced by others


def mutated(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, gone, new in edits:
        content = content[:at] + new + content[at + gone :]
    return content


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
@settings(deadline=None, max_examples=150)
@given(
    edits=st.lists(EDIT, max_size=4),
    end=st.one_of(st.none(), st.integers(0, 500)),
    ends=st.sampled_from([b"\n", b"\r\n"]),
    packed=st.sampled_from(["no", "whole", "broken"]),
    stated=st.booleans(),
)
def test_broken_bytes_give_an_error_with_a_place(file, edits, end, ends, packed, stated):
    content = ends.join(line.encode() for line in file.lines)
    if packed == "broken":
        content = gzip.compress(content, mtime=0)
    content = mutated(content, edits)[:end]
    if packed == "whole":
        content = gzip.compress(content, mtime=0)
    with tempfile.TemporaryDirectory() as folder:  # a folder of its own: a file is remembered by its path and time
        path = file.write(Path(folder), content)
        try:
            trace = read_trace(path, file.name if stated else "auto", file.columns)
        except InputError as error:
            trace = None
            told = [str(problem) for problem in error.problems]
    if trace is None:
        assert told
        assert all(TOLD.fullmatch(text) for text in told), told
        return
    count = len(trace)
    assert count == len(trace.prompt_tokens) == len(trace.output_tokens) > 0
    for tokens in (trace.prompt_tokens, trace.output_tokens):
        assert tokens.min() >= 1
        assert tokens.max() <= MAX_TOKENS
    if trace.arrival_ms is not None:
        assert len(trace.arrival_ms) == count
        assert trace.arrival_ms[0] == 0
        assert np.all(np.isfinite(trace.arrival_ms))
        assert np.all(np.diff(trace.arrival_ms) >= 0)
    if trace.hash_ids is not None:
        assert len(trace.hash_offsets) == count + 1
        assert trace.hash_offsets[-1] == len(trace.hash_ids)
