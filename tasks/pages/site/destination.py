"""Where a site is published: a folder or a prefix of object storage. Only this module changes it.

In a folder no link is followed: each folder of an address is opened relative to the one before, and links are refused.
The folder that the user names may be a link.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.bundle.names import MAX_FILE_BYTES
from tasks.bundle.record import BundleError
from tasks.store.blob_store import file_system, read_files, validate_location

FOREIGN = ""
"""In place of the hash of what is not a regular file, or larger than any page."""
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)
_ASIDE = ".etfarm-part"
"""The file that is being written, in the root folder: one at a time, so that a kill leaves no other incomplete file."""


@contextlib.contextmanager
def open_destination(location: str) -> Iterator["Destination"]:
    """Yield the destination of a folder or a URL. A folder is created, and locked during the block.

    Raises InputError for an empty location, a folder that is locked, or a URL that is local or without a bucket.
    """
    if not location.strip():
        raise InputError("--publish: the location is empty; name a folder, or a URL such as s3://bucket/farm")
    if "://" in location:
        yield _Prefix(location)
        return
    Path(location).mkdir(parents=True, exist_ok=True)
    root = os.open(location, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the folder is closed, also by a kill
        except BlockingIOError:
            cause = "another `etfarm site --publish` is writing here"
            raise InputError(f"{location}: {cause}; wait until it ends, then publish again") from None
        except OSError:
            pass  # a network file system without locks: _ASIDE, which must not exist, excludes others during a write
        yield _Folder(location, root)
    finally:
        os.close(root)


class _Folder:
    """Files of a folder by their addresses, such as `nights/2026-11-22.html`. Errors of the storage are OSErrors."""

    def __init__(self, location: str, root: int) -> None:
        self._location, self._root = location, root
        self._has_written = False

    def is_empty(self) -> bool:
        """Return whether nothing is there but a file that a killed publication left."""
        return set(os.listdir(self._root)) <= {_ASIDE}  # noqa: PTH208 (there is no path of an open folder)

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """Return the content of a file; None without one. Raises FarmError for a larger one."""
        try:
            with open_untrusted(Path(name), max_bytes, folder=self._root) as stream:
                return stream.read(max_bytes)
        except UntrustedFileError as error:
            if error.is_missing:
                return None
            raise UntrustedFileError(f"{self._location}/{error}") from None

    def missing(self, names: Iterable[str]) -> set[str]:
        """Return which files do not exist. Raises InputError where a link or a file is in place of their folder."""
        missing = set(names)
        for name in tuple(missing):
            with contextlib.suppress(FileNotFoundError), self._open_parent(name) as (folder, file):
                os.stat(file, dir_fd=folder, follow_symlinks=False)
                missing.remove(name)
        return missing

    def hashes(self, names: Iterable[str]) -> dict[str, str]:
        """Return the SHA-256 of each file that exists, or FOREIGN."""
        hashes = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError), self._open_parent(name) as (folder, file):
                try:
                    with open_untrusted(Path(file), MAX_FILE_BYTES, folder=folder) as stream:
                        hashes[name] = hashlib.file_digest(stream, "sha256").hexdigest()
                except UntrustedFileError as error:
                    if not error.is_missing:
                        hashes[name] = FOREIGN
        return hashes

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files, each completely or not at all."""
        if not self._has_written:
            self._remove_aside()  # a killed publication left it
        self._has_written = True
        for name, content in files.items():
            with self._open_parent(name, create=True) as (folder, file), self._write_aside(content):
                os.replace(_ASIDE, file, src_dir_fd=self._root, dst_dir_fd=folder)

    @contextlib.contextmanager
    def _write_aside(self, content: bytes) -> Iterator[None]:
        """Write the content to _ASIDE and sync it, for the block to move it. On an error it is removed."""
        descriptor = os.open(_ASIDE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._root)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(descriptor)
            yield
        except BaseException:
            self._remove_aside()
            raise

    def _remove_aside(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_ASIDE, dir_fd=self._root)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError), self._open_parent(name) as (folder, file):
                os.unlink(file, dir_fd=folder)

    @contextlib.contextmanager
    def _open_parent(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of a file's folder and the file's name in it; `create` creates missing folders.

        Raises InputError if a folder is a link or a file, FileNotFoundError if it does not exist.
        """
        *steps, file = name.split("/")
        folder = os.dup(self._root)
        try:
            for number, step in enumerate(steps, 1):
                try:
                    inner = _open_folder(step, folder, create=create)
                except OSError as error:
                    if error.errno not in _NO_FOLDER:
                        raise
                    path = "/".join([self._location, *steps[:number]])
                    raise InputError(f"{path}: is a link or a file, not a folder; move it away") from None
                os.close(folder)
                folder = inner
            yield folder, file
        finally:
            os.close(folder)


def _open_folder(name: str, folder: int, *, create: bool) -> int:
    """Return a descriptor of a folder in an open folder; `create` creates it if it is missing."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
        os.mkdir(name, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)


class _Prefix:
    """Files below a prefix of object storage, with the methods of a folder."""

    def __init__(self, location: str) -> None:
        from fsspec.implementations.local import LocalFileSystem

        self._fs: Any
        self._fs, self._root = file_system(validate_location(location, "--publish"))
        if isinstance(self._fs, LocalFileSystem):
            raise InputError(
                f"--publish {location}: name a folder by its path, without {location.partition('//')[0]}//"
            )
        if not self._root:
            raise InputError(f"--publish {location}: the bucket is missing; write s3://bucket/prefix")

    def is_empty(self) -> bool:
        try:
            paths = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:
            return True
        return all(path.rstrip("/") == self._root for path in paths)  # an entry that consoles create for a new prefix

    def read(self, name: str, max_bytes: int) -> bytes | None:
        path = f"{self._root}/{name}"
        try:
            content = read_files(self._fs, {path: self._fs.info(path)["size"]}, max_bytes)[path]
        except FileNotFoundError:
            return None
        if isinstance(content, Exception):
            raise content
        return content

    def missing(self, names: Iterable[str]) -> set[str]:
        return set(names) - self._sizes.keys()

    def hashes(self, names: Iterable[str]) -> dict[str, str]:
        sizes = {f"{self._root}/{name}": self._sizes[name] for name in names if name in self._sizes}
        hashes = {}
        for path, content in read_files(self._fs, sizes, MAX_FILE_BYTES).items():
            if isinstance(content, bytes):
                hashes[self._name(path)] = hashlib.sha256(content).hexdigest()
            elif isinstance(content, BundleError):  # it is too large
                hashes[self._name(path)] = FOREIGN
            elif not isinstance(content, FileNotFoundError):
                raise content
        return hashes

    def write(self, files: Mapping[str, bytes]) -> None:
        self._fs.pipe({f"{self._root}/{name}": content for name, content in files.items()})
        self._sizes.update({name: len(content) for name, content in files.items()})

    def remove(self, names: Iterable[str]) -> None:
        if paths := [f"{self._root}/{name}" for name in names]:
            self._fs.rm(paths)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """The size in bytes of each file: those listed once, and those written since."""
        return {self._name(path): each["size"] for path, each in self._fs.find(self._root, detail=True).items()}

    def _name(self, path: str) -> str:
        return path.removeprefix(f"{self._root}/")


Destination = _Folder | _Prefix
