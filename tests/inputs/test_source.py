import os
from pathlib import Path

import pytest

from sim.inputs.errors import InputError
from sim.inputs.source import decode, file_defect, read_bytes


def test_a_regular_file_has_no_defect(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\n")
    assert file_defect(path, 100) is None
    assert read_bytes(path, 100) == b"a: 1\n"


def test_a_missing_file_a_directory_a_pipe_a_device_and_a_large_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 101)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    expected = {
        tmp_path / "missing": "No such file",
        tmp_path: "is a directory",
        tmp_path / "pipe": "is a pipe or device",
        Path("/dev/zero"): "is a pipe or device",
        tmp_path / "large": "has 101 bytes",
        tmp_path / "loop": "symbolic links",
        tmp_path / "a\0b": "NUL",
        tmp_path / ("n" * 5000): "(?i)name too long",
    }
    for path, words in expected.items():
        with pytest.raises(InputError, match=words) as caught:
            read_bytes(path, 100)
        assert len(str(caught.value).splitlines()) == 1


def test_bytes_that_are_no_text_are_placed():
    with pytest.raises(InputError) as caught:
        decode(b"a: 1\nb: \xff\n", "x.yaml")
    assert str(caught.value).startswith("x.yaml:2:4: file: byte 0xff is not UTF-8 text")


def test_a_byte_order_mark_is_no_text():
    assert decode(b"\xef\xbb\xbfa: 1", "x.yaml") == "a: 1"
