"""Files with one length a line."""

from __future__ import annotations

import pytest

from sim.formats.length_file import read_lengths
from sim.inputs.errors import InputError


def test_lengths_in_the_order_of_the_file(tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_bytes(b"\xef\xbb\xbf12\r\n 7 \r\n300\r\n\r\n")
    assert read_lengths(path).tolist() == [12, 7, 300]


@pytest.mark.parametrize(
    ("content", "lines"),
    [("", [1]), ("5\n0\n-1\n7\n1.5\nsix\n", [2, 3, 5, 6]), ("5\n\n6\n", [2]), ("10000001", [1])],
)
def test_every_bad_line_is_named(tmp_path, content, lines):
    path = tmp_path / "lengths.txt"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_lengths(path)
    assert [problem.line for problem in caught.value.problems] == lines
    assert str(caught.value).startswith(f"{path}:{lines[0]}:1: length: ")
