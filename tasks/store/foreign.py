"""Files that others wrote: opened without waiting and without following a link, and read up to a limit."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from devices.errors import FarmError

MOST_BYTES = {"kit": 2 << 20, "log": 16 << 20, "etdump": 256 << 20}
"""Limits by kind. Those of logs and ETDumps are the limits of what a device sends; parsed JSON takes 40 times as much
memory as its text, and the configurations of the profiling kit (`kit`) have some kilobytes."""


class ForeignFileError(FarmError):
    """A file cannot be opened, or is not a regular file of at most its limit; the text is one sentence."""


def open_foreign(path: Path, most_bytes: int) -> BinaryIO:
    """Open a regular file of at most `most_bytes` for reading; raises ForeignFileError.

    A link is refused, since it can lead out of the folder; a pipe is not waited for.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ForeignFileError(f"{path}: is a link; copy the file in its place") from None
        raise ForeignFileError(f"{path}: cannot be read ({error.strerror})") from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ForeignFileError(f"{path}: is not a regular file; move it away")
    raise ForeignFileError(f"{path}: has {status.st_size} bytes; the limit is {most_bytes}")


def read_foreign(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most `most_bytes`; raises ForeignFileError."""
    with open_foreign(path, most_bytes) as stream:
        try:
            content = stream.read(most_bytes + 1)
        except OSError as error:
            raise ForeignFileError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > most_bytes:  # it has grown since it was opened
        raise ForeignFileError(f"{path}: has more than {most_bytes} bytes, which is the limit")
    return content
