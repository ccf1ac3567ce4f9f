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
from pathlib import Path

from devices.errors import FarmError

_OF_LINKS_AND_SOCKETS = {errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EOPNOTSUPP}


class _NotRegularError(Exception):
    pass


class ForeignFileError(FarmError):
    """A file is not regular or larger than its limit; the text is one sentence that begins with its path."""


@contextlib.contextmanager
def open_foreign(path: Path, most_bytes: int) -> Iterator[io.BufferedReader]:
    """Yield the content of a regular file of at most `most_bytes`; links are not followed.

    Raises ForeignFileError, or OSError if the file cannot be opened.
    """
    try:
        with open(path, "rb", opener=_open_regular) as stream:
            size_bytes = os.fstat(stream.fileno()).st_size
            if size_bytes > most_bytes:
                raise ForeignFileError(f"{path}: has {size_bytes} bytes; the limit for such a file is {most_bytes}")
            yield stream
    except _NotRegularError:
        cause = "is not a regular file but a link, a folder, a pipe or a device; replace it"
        raise ForeignFileError(f"{path}: {cause}") from None


def read_foreign(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most `most_bytes`; raises as `open_foreign`."""
    with open_foreign(path, most_bytes) as stream:
        return stream.read(most_bytes)


def sha256_of_foreign(path: Path, most_bytes: int) -> str:
    """Return the SHA-256 of a regular file of at most `most_bytes`; raises as `open_foreign`."""
    with open_foreign(path, most_bytes) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _open_regular(path: str, flags: int) -> int:
    """Open a file as `open` asks for; raises _NotRegularError if it is not regular."""
    try:
        # Opening a pipe would otherwise wait for somebody who writes to it.
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in _OF_LINKS_AND_SOCKETS:
            raise _NotRegularError from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _NotRegularError
    return descriptor
