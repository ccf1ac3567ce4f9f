"""Files that a farm and its labs share, beside the bundles: exports, runners, and what they tell each other.

A name is a path such as `exports/1f3a.tar.zst`. Every file appears completely or not at all; the newest content stays.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.bundle.record import BundleError
from tasks.store.access import file_system, read_files, reported

SHARED = frozenset({"exports", "runners", "labs"})
"""The first folders of all names."""
_MOST_BYTES = 64 << 20
"""Of what is read whole; an order of 300 exports has some 10 MB."""


class TooLargeError(BundleError):
    """A file is larger than any that farms and labs write, and was not read."""


@dataclass(frozen=True)
class Shelf:
    """Files by name, below a folder or a URL; every method raises BundleError if the storage does not answer."""

    location: str

    def put(self, name: str, source: Path) -> None:
        """Keep a file under this name."""
        with reported(self.location, f"{name} cannot be written"):
            self._fs.put_file(str(source), self._path(name))

    def get(self, name: str, target: Path) -> bool:
        """Write the file of this name to `target`; return False if there is none."""
        with reported(self.location, f"{name} cannot be fetched"):
            try:
                self._fs.get_file(self._path(name), str(target))
            except FileNotFoundError:
                return False
        return True

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name, which is then about to be used."""
        with reported(self.location, f"{name} cannot be found"):
            return bool(self._fs.isfile(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        """Keep a small content under this name."""
        with reported(self.location, f"{name} cannot be written"):
            self._fs.pipe_file(self._path(name), content)

    def read(self, name: str) -> bytes | None:
        """Return the content of this name; None if there is none. Raises TooLargeError."""
        with reported(self.location, f"{name} cannot be read"):
            try:
                content = bytes(self._fs.cat_file(self._path(name), start=0, end=_MOST_BYTES + 1))
            except FileNotFoundError:
                return None
        if len(content) > _MOST_BYTES:
            raise TooLargeError(f"{self.location}/{name}: has more than {_MOST_BYTES} bytes, which is the limit")
        return content

    def names(self, folder: str) -> list[str]:
        """Return the names of all JSON files below `folder`, relative to it."""
        with reported(self.location, f"{folder} cannot be listed"):
            found = self._fs.find(self._path(folder))
            return sorted(path.rpartition(f"{folder}/")[2] for path in found if path.endswith(".json"))

    def contents(self, folder: str) -> dict[str, bytes | Exception]:
        """Return the content of each JSON file in `folder` by its path, or the error of reading it."""
        with reported(self.location, f"{folder} cannot be read"):
            found = self._fs.find(self._path(folder), detail=True)
            sizes = {path: int(found[path]["size"]) for path in sorted(found) if path.endswith(".json")}
            return read_files(self._fs, sizes, _MOST_BYTES)

    def remove(self, folder: str) -> None:
        """Remove all files whose name begins with `folder`/."""
        with reported(self.location, f"{folder} cannot be removed"), contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._path(folder), recursive=True)

    @property
    def _fs(self) -> Any:
        return file_system(self.location)[0]

    def _path(self, name: str) -> str:
        return f"{file_system(self.location)[1]}/{name}"
