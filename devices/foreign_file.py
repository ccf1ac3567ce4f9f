"""Files that strangers may have written: opened only if they are regular, and read no further than a limit.

A pipe or a device would be read for ever, a file of holes fills the memory, and a link leads to files of this machine.
"""

import contextlib
import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from devices.errors import FarmError


class ForeignFileError(FarmError):
    """A file cannot be read, or is not a regular file of at most its limit; the text is one sentence."""

    def __init__(self, text: str, *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing


@contextlib.contextmanager
def open_foreign(path: Path, most_bytes: int, folder: int | None = None) -> Iterator[io.BufferedReader]:
    """Yield the content of a regular file of at most `most_bytes`, in an open `folder`; raises ForeignFileError.

    A link is refused, since it can lead out of the folder; a pipe is not waited for.
    """
    try:
        with open(path, "rb", opener=partial(_open_regular, folder=folder)) as stream:
            size_bytes = os.fstat(stream.fileno()).st_size
            if size_bytes > most_bytes:
                raise ForeignFileError(f"{path}: has {size_bytes} bytes; the limit is {most_bytes}")
            yield stream
    except OSError as error:
        raise ForeignFileError(
            f"{path}: {_CAUSES.get(error.errno or 0, f'cannot be read ({error.strerror})')}",
            is_missing=isinstance(error, FileNotFoundError),
        ) from None


def read_foreign(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most `most_bytes`; raises ForeignFileError."""
    with open_foreign(path, most_bytes) as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:  # it has grown since it was opened
        raise ForeignFileError(f"{path}: has more than {most_bytes} bytes, which is the limit")
    return content


def sha256_of_foreign(path: Path, most_bytes: int) -> str:
    """Return the SHA-256 of a regular file of at most `most_bytes`; raises ForeignFileError."""
    with open_foreign(path, most_bytes) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_NOT_REGULAR = errno.EOPNOTSUPP
_CAUSES = {errno.ELOOP: "is a link; copy the file in its place", _NOT_REGULAR: "is not a regular file; move it away"}


def _open_regular(path: str, flags: int, folder: int | None) -> int:
    """Open a file as `open` asks for; raises OSError, with _NOT_REGULAR for what is none."""
    # Opening a pipe would otherwise wait for somebody who writes to it.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(_NOT_REGULAR, os.strerror(_NOT_REGULAR))
    return descriptor
