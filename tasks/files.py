"""Files and folders that exist completely or not at all."""

import contextlib
import getpass
import hashlib
import io
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".part-"
"""How the names of files and folders begin that are still being written."""
_BLOCK_BYTES = 1 << 22


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits; raises OSError where it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def publish_folder(final: Path) -> Iterator[Path]:
    """Yield an empty folder beside `final`; rename it to `final` at the end of the block, or remove it on an error.

    If `final` appeared meanwhile, it is kept: two processes that make the same content both use it.
    Leftovers of killed processes are removed first, by the process id in their names.
    """
    with work_folder(final.parent) as aside:
        yield aside
        _flush(aside)
        try:
            aside.rename(final)
        except OSError:
            if not final.is_dir():
                raise


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder outside the var folder, for this block only; leftovers of killed processes are removed."""
    with work_folder(Path(tempfile.gettempdir()) / f"etfarm-scratch-{getpass.getuser()}") as folder:
        yield folder


@contextlib.contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream; at the end of the block its content replaces `path`, or on an error `path` stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.parent / f"{UNFINISHED}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        with aside.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_complete(path: Path, data: bytes | BinaryIO) -> None:
    """Write `data` (bytes, or the rest of a stream) to `path`; a reader sees the old content or the new."""
    with complete_file(path) as stream:
        shutil.copyfileobj(io.BytesIO(data) if isinstance(data, bytes) else data, stream, _BLOCK_BYTES)


def remove_leftovers(folder: Path) -> None:
    """Remove partial files and folders in `folder` that killed processes of this machine left."""
    for leftover in folder.glob(f"{UNFINISHED}*"):
        pid = leftover.name.removeprefix(UNFINISHED).split("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in `parent` for the block alone; what killed processes left there is removed first."""
    parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(parent)
    aside = parent / f"{UNFINISHED}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    aside.mkdir()
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
