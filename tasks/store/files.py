"""Files and folders that exist completely or not at all."""

import contextlib
import getpass
import hashlib
import io
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".part-"
"""How the names of files and folders begin that are still being written."""
# How the names of folders with archives on their way to a device begin; see devices/ondevice/store.py.
_UPLOAD = "etfarm-tree-"
_BLOCK_BYTES = 1 << 22
_PID = re.compile(r"([1-9][0-9]{0,9})-")
_TRIES = 5
# Another machine that shares the folder is writing what is younger: nothing takes a tenth of this.
_ABANDONED_S = 86_400.0
# The files and folders that this process is writing now.
_unfinished: set[Path] = set()
_calls_before_search: dict[Path, int] = {}
_is_ending = threading.Event()
_syncing = ThreadPoolExecutor(8, "sync")


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits; raises OSError if it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def publish_folder(final: Path) -> Iterator[Path]:
    """Yield an empty folder beside `final`; rename it to `final` at the end of the block, or remove it on an error.

    Its files are synced to the disk before. If `final` appeared meanwhile, it is kept: two processes that make the same
    content both use it.
    """
    with work_folder(final.parent) as aside:
        yield aside
        _sync_all([path for path in aside.rglob("*") if path.is_file()])
        try:
            aside.rename(final)
        except OSError:
            if not final.is_dir():
                raise


def _sync_all(paths: Sequence[Path]) -> None:
    """Sync files at once: a file system then commits all of them together, and not each for itself."""
    try:
        list(_syncing.map(_sync, paths))
    except RuntimeError:  # no thread can be started: the limit of processes is reached, or the interpreter is ending
        for path in paths:
            _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder outside the data folder, for this block only; leftovers of killed processes are removed."""
    with work_folder(_scratch_parent()) as folder:
        yield folder


def _scratch_parent() -> Path:
    return Path(tempfile.gettempdir()) / f"etfarm-scratch-{getpass.getuser()}"


@contextlib.contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream; at the end of the block its content replaces `path`, or on an error `path` stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _reserve_path(path.parent)
    try:
        with aside.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
        _unfinished.discard(aside)


def write_complete(path: Path, data: bytes | BinaryIO) -> None:
    """Write `data` (bytes, or the rest of a stream) to `path`; a reader sees the old content or the new."""
    with complete_file(path) as stream:
        shutil.copyfileobj(io.BytesIO(data) if isinstance(data, bytes) else data, stream, _BLOCK_BYTES)


def leftovers_below(root: Path, stores: Sequence[Path]) -> list[Path]:
    """Return what killed processes left unfinished in the data folder `root` and in the farm's temporary folders.

    `stores` are the folders of the bundles, which may be elsewhere.
    """
    folders = {_scratch_parent(), *(path.parent for path in _unfinished_below(root, stores))}
    paths = [path for folder in sorted(folders) for path in leftovers(folder)]
    return paths + [path for path in _uploads() if _is_of_dead_process(path, _UPLOAD)]


def unfinished_elsewhere(root: Path, stores: Sequence[Path]) -> list[Path]:
    """Return what other machines are writing in `root` or `stores`, or left there less than a day ago.

    This machine cannot distinguish the two.
    """
    here = socket.gethostname()
    return [
        path for path in _unfinished_below(root, stores) if writer_machine(path) != here and not _is_abandoned(path)
    ]


def _unfinished_below(root: Path, stores: Sequence[Path]) -> list[Path]:
    """Return the unfinished files and folders in `root` and two levels below, and in `stores` and one level below."""
    searched = [(root, ""), (root, "*/"), (root, "*/*/"), *((store, depth) for store in stores for depth in ("", "*/"))]
    return sorted({path for folder, depth in searched for path in folder.glob(f"{depth}{UNFINISHED}*")})


def leftovers(folder: Path) -> list[Path]:
    """Return the partial files and folders in `folder` that killed processes left: of this machine, or a day old."""
    # With thousands of bundles beside them, a path for each would take ten times as long.
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208
    return [folder / name for name in sorted(names) if name.startswith(UNFINISHED) and _is_abandoned(folder / name)]


def writer_machine(path: Path) -> str:
    """Return the name of the machine that began to write an unfinished file or folder."""
    return path.name.rpartition("@")[2] if "@" in path.name else socket.gethostname()


def _is_abandoned(path: Path) -> bool:
    """Return whether its process on this machine has ended, or another machine wrote nothing to it for a day."""
    if writer_machine(path) == socket.gethostname():
        return _is_of_dead_process(path, UNFINISHED)
    try:
        newest = max(each.lstat().st_mtime for each in (path, *path.rglob("*")))
    except FileNotFoundError:  # it was finished meanwhile
        return False
    return time.time() - newest > _ABANDONED_S


def _is_of_dead_process(path: Path, prefix: str) -> bool:
    """Return whether a name is `prefix`, the id of a process that has ended, and a dash with more."""
    pid = _PID.match(path.name.removeprefix(prefix))
    try:
        if pid:
            os.kill(int(pid[1]), 0)
    except (ProcessLookupError, OverflowError):  # no process has so large a number
        return True
    except PermissionError:
        return False
    return False


def remove_leftovers(folder: Path) -> None:
    """Remove partial files and folders in `folder` that killed processes left."""
    for leftover in leftovers(folder):
        remove(leftover)


def remove_unfinished() -> None:
    """Remove what this process is writing, before it ends without leaving its blocks."""
    uploads = [path for path in _uploads() if path.name.startswith(f"{_UPLOAD}{os.getpid()}-")]
    for path in [*_unfinished, *uploads]:
        remove(path)


def register_unfinished(path: Path) -> None:
    """Let `remove_unfinished` also remove this file or folder, which other code created for this process."""
    _unfinished.add(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, also if another thread is still writing to it; after five tries it may stay."""
    for _ in range(_TRIES):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        if not path.exists():
            return


def remove_atomically(path: Path) -> None:
    """Remove a file or a folder; others see it complete or not at all."""
    aside = path.with_name(_unfinished_name(path.name))
    path.rename(aside)
    remove(aside)


def size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file())


def end_publishing() -> None:
    """Block every thread that begins to publish a bundle or another folder from now on: this process is about to end.

    Otherwise sessions whose devices are being released would be recorded as failed.
    """
    _is_ending.set()


def wait_if_ending() -> None:
    """Return at once, or never after `end_publishing`."""
    if _is_ending.is_set():
        threading.Event().wait()


@contextlib.contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in `parent`, which is removed at the end of the block.

    Leftovers in `parent` are removed before: by the first call of a process, and by later ones so rarely that the
    search of a folder with ten thousand bundles does not take as long as all else that writes a bundle.
    """
    wait_if_ending()
    parent.mkdir(parents=True, exist_ok=True)
    calls = _calls_before_search[parent] = _calls_before_search.get(parent, 0) - 1
    if calls < 0:
        remove_leftovers(parent)
        _calls_before_search[parent] = len(os.listdir(parent)) // 16  # noqa: PTH208
    aside = _reserve_path(parent)
    aside.mkdir()
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        _unfinished.discard(aside)


def _reserve_path(parent: Path) -> Path:
    """Return a new path in `parent`, and record that this process is writing it."""
    aside = parent / _unfinished_name(os.urandom(4).hex())
    _unfinished.add(aside)
    return aside


def _unfinished_name(name: str) -> str:
    """Return a name that contains the process and the machine, because machines may share the folder."""
    return f"{UNFINISHED}{os.getpid()}-{name}@{socket.gethostname()}"


def _uploads() -> Iterator[Path]:
    return Path(tempfile.gettempdir()).glob(f"{_UPLOAD}*")
