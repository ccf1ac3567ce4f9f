"""Files that a device sends: each is at most as large as its limit, also if the device states another size."""

import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from devices.errors import FileRefused, TransferFailed


def check_fetchable(name: str, remote: str, mode: int, size_bytes: int, limit_bytes: int) -> None:
    """Raise FileRefused unless a file's mode and size, as the device `name` states them, allow to fetch it.

    A link is not followed: it can name an endless file, or one that does not belong to the farm.
    """
    if not stat.S_ISREG(mode):
        raise FileRefused(name, f"{remote} is not a regular file", "write a file there, not a link or a folder")
    if size_bytes > limit_bytes:
        raise FileRefused(name, f"{remote} has {size_bytes} bytes; the limit is {limit_bytes}")


def save(name: str, remote: str, chunks: Iterable[bytes], local: Path, limit_bytes: int) -> None:
    """Write the content of a device's file to `local`, which is then complete, or untouched after an error.

    Raises FileRefused when more than `limit_bytes` arrive, TransferFailed if `local` cannot be written.
    """
    part = local.with_name(f".{uuid.uuid4().hex}.part")
    received = 0
    try:
        with _local_errors(name, local):
            local.parent.mkdir(parents=True, exist_ok=True)
            target = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(target, "wb", buffering=0) as stream:
            for chunk in chunks:
                received += len(chunk)
                if received > limit_bytes:
                    raise FileRefused(name, f"{remote} has more than {limit_bytes} bytes, which is the limit")
                with _local_errors(name, local):
                    stream.write(chunk)
        with _local_errors(name, local):
            part.replace(local)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def _local_errors(name: str, local: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransferFailed(name, f"cannot write {local} ({error.strerror})") from None
