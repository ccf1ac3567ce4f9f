"""Files, JSON and text of others: opened without waiting, within limits; unambiguous; harmless where it is shown."""

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from devices.untrusted import (
    UntrustedFileError,
    excerpt,
    hash_untrusted,
    parse_json,
    read_json,
    read_untrusted,
    sanitize,
    sanitize_line,
)


def test_a_file_up_to_the_limit_is_read_and_a_larger_one_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for size in (0, 9, 10):
        path.write_bytes(b"a" * size)
        assert read_untrusted(path, 10) == b"a" * size
        assert hash_untrusted(path, 10) == hashlib.sha256(b"a" * size).hexdigest()
    os.truncate(path, 30 << 30)
    with pytest.raises(UntrustedFileError, match=rf"^{path}: has {30 << 30} bytes; the limit is 10$"):
        read_untrusted(path, 10)


@pytest.mark.parametrize("read", [read_untrusted, hash_untrusted])
def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path, int], object]
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * 11)
    monkeypatch.setattr("devices.untrusted.open_untrusted", lambda path, _most_bytes: path.open("rb"))
    with pytest.raises(UntrustedFileError, match=rf"^{path}: has more than 10 bytes, which is the limit$"):
        read(path, 10)


def made_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # the address of a socket is short
        server.bind(path.name)


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
    with pytest.raises(UntrustedFileError, match=rf"^{path}: {cause}$"):
        read_untrusted(path, 10)
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


class Thing(BaseModel):
    size: int
    parts: list[dict[str, int]] = []


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"size": 1, "size": 2}', "duplicate key `size`, with 1 and 2"),
        ('{"size": 1, "parts": [{"a": 1, "b": 2, "a": 3}]}', "duplicate key `a`, with 1 and 3"),
        ('{"size": 1, "un\\u006bnown": {}, "unknown": "\\u0007"}', 'duplicate key `unknown`, with {} and "\\u0007"'),
    ],
)
def test_a_text_that_parsers_read_in_different_ways_is_refused(text: str, cause: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read_json(Thing, text)
    assert cause in refused.value.errors()[0]["msg"]
    with pytest.raises(ValueError, match="duplicate"):
        parse_json(text)


def test_other_texts_are_read_as_they_are() -> None:
    assert read_json(Thing, b'{"size": 1, "parts": [{"a": 1}, {"a": 2}]}').parts == [{"a": 1}, {"a": 2}]


# Accents, Chinese, Arabic with a joiner, emoji of several parts, newer than Python's tables, a no-break space, signs.
HARMLESS = [
    "Zürich, naïve, e\u0301", "模型\u3000延迟", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "👩\u200d🔧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️", "\U0001faff\U0001fae9", "5\u00a0ms", "a|b <c> `d` \\x1b \\u202e ~^",
]  # fmt: skip
# Escapes, control characters, marks of direction, a line separator, and a byte of a file's name.
ACTING = "\x1b\x9b\x07\r\b\x7f\0\u202e\u2066\u2069\u200e\u061c\u2028\udcff"


def test_legitimate_text_stays_as_it_is_and_a_character_that_acts_becomes_a_mark_or_a_blank() -> None:
    for text in HARMLESS:
        assert (sanitize(text), sanitize_line(text), sanitize(f"{text}\n\t{text}")) == (text, text, f"{text}\n\t{text}")
    for character in ACTING:
        assert sanitize(f"a{character}b") == "a\ufffdb"
        assert sanitize_line(f"a{character}b") in ("a\ufffdb", "a b")
        assert excerpt(f"a{character}b") in ("a\ufffdb", "a b")
    assert sanitize_line("a\nb\rc\td\x0be\x0cf\x85g\u2028h\u2029i") == "a b c d e f g h i"


@pytest.mark.parametrize(("letters", "shown"), [(9, "x" * 9), (10, "x" * 10), (11, "x" * 10 + "...")])
def test_a_part_of_a_sentence_is_cut_after_its_limit(letters: int, shown: str) -> None:
    assert excerpt("x" * letters, 10) == shown
