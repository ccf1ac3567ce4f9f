"""Files that a farm and its labs share, beside the bundles: exports, runners, and what they tell each other.

A name is a path such as `exports/1f3a.tar.zst`. Every file appears completely or not at all; the newest content stays.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tasks.bundle.record import BundleError
from tasks.store.access import file_system, reported
from tasks.store.files import write_complete

SHARED = frozenset({"exports", "runners", "labs"})
"""The first folders of all names."""


class Shelf(Protocol):
    """Shared files by name; every method raises BundleError if the storage does not answer."""

    def put(self, name: str, source: Path) -> None:
        """Keep a file under this name."""
        ...

    def get(self, name: str, target: Path) -> bool:
        """Write the file of this name to `target`; return False if there is none."""
        ...

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name, which is then about to be used."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Keep a small content under this name."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of this name; None if there is none."""
        ...

    def remove(self, folder: str) -> None:
        """Remove all files whose name begins with `folder`/."""
        ...


@dataclass(frozen=True)
class FolderShelf:
    """Shared files in a folder, which all machines see under the same path."""

    root: Path

    def put(self, name: str, source: Path) -> None:
        """See Shelf.put."""
        with _os_errors(self.root), source.open("rb") as stream:
            write_complete(self.root / name, stream)

    def get(self, name: str, target: Path) -> bool:
        """See Shelf.get."""
        try:
            with _os_errors(self.root), (self.root / name).open("rb") as stream:
                write_complete(target, stream)
        except FileNotFoundError:
            return False
        return True

    def has(self, name: str) -> bool:
        """See Shelf.has: the time of the file is that of its last use, for `etfarm prune`."""
        try:
            with _os_errors(self.root):
                os.utime(self.root / name)
        except FileNotFoundError:
            return False
        return True

    def write(self, name: str, content: bytes) -> None:
        """See Shelf.write."""
        with _os_errors(self.root):
            write_complete(self.root / name, content)

    def read(self, name: str) -> bytes | None:
        """See Shelf.read."""
        try:
            with _os_errors(self.root):
                return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, folder: str) -> None:
        """See Shelf.remove."""
        shutil.rmtree(self.root / folder, ignore_errors=True)


@dataclass(frozen=True)
class ObjectShelf:
    """Shared files in object storage, below a URL."""

    location: str

    def put(self, name: str, source: Path) -> None:
        """See Shelf.put."""
        with reported(self.location, f"{name} cannot be uploaded"):
            self._fs.put_file(str(source), self._path(name))

    def get(self, name: str, target: Path) -> bool:
        """See Shelf.get."""
        with reported(self.location, f"{name} cannot be fetched"):
            try:
                self._fs.get_file(self._path(name), str(target))
            except FileNotFoundError:
                return False
        return True

    def has(self, name: str) -> bool:
        """See Shelf.has."""
        with reported(self.location, f"{name} cannot be found"):
            return bool(self._fs.isfile(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        """See Shelf.write."""
        with reported(self.location, f"{name} cannot be written"):
            self._fs.pipe_file(self._path(name), content)

    def read(self, name: str) -> bytes | None:
        """See Shelf.read."""
        with reported(self.location, f"{name} cannot be read"):
            try:
                return bytes(self._fs.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def remove(self, folder: str) -> None:
        """See Shelf.remove."""
        with reported(self.location, f"{folder} cannot be removed"):
            if paths := self._fs.find(self._path(folder)):
                self._fs.rm(paths)

    @property
    def _fs(self) -> Any:
        return file_system(self.location)[0]

    def _path(self, name: str) -> str:
        return f"{file_system(self.location)[1]}/{name}"


@contextlib.contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    """Turn an error of the file system into a BundleError; a missing file stays one."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BundleError(f"{error.filename or path}: {error.strerror}; check the folder that the labs share") from None
