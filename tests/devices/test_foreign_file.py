"""Files of others are opened without waiting, without following a link, and up to a limit."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devices.foreign_file import ForeignFileError, open_foreign, read_foreign


@pytest.mark.parametrize("size", [0, 9, 10])
def test_a_file_up_to_the_limit_is_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * size)
    assert read_foreign(path, 10) == b"a" * size
    with open_foreign(path, 10) as stream:
        assert stream.read(1) == b"a"[:size]


def test_a_larger_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    os.truncate(path, 30 << 30)
    with pytest.raises(ForeignFileError, match=rf"^{path}: has {30 << 30} bytes; the limit is 10$"):
        read_foreign(path, 10)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * 11)
    monkeypatch.setattr("devices.foreign_file.open_foreign", lambda path, _most_bytes: path.open("rb"))
    with pytest.raises(ForeignFileError, match=rf"^{path}: has more than 10 bytes, which is the limit$"):
        read_foreign(path, 10)


def made_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # the address of a socket is short
        made.bind(path.name)


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (os.mkfifo, "is not a regular file; move it away"),
        (Path.mkdir, "is not a regular file; move it away"),
        (made_socket, r"cannot be read \(.+\)"),
        (lambda path: path.symlink_to("/dev/zero"), "is a link; copy the file in its place"),
        (lambda path: path.symlink_to(path.name), "is a link; copy the file in its place"),
        (lambda _path: None, r"cannot be read \(No such file or directory\)"),
    ],
    ids=["pipe", "folder", "socket", "link to a device", "link to itself", "nothing"],
)
def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], Any], cause: str) -> None:
    path = tmp_path / "x"
    make(path)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    with pytest.raises(ForeignFileError, match=rf"^{path}: {cause}$"):
        read_foreign(path, 10)
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208
