"""Files by name below a folder or a URL, through fsspec: what farms and labs share, and decisions of users.

A name is a path such as `exports/1f3a.tar.zst`. Every file appears completely or not at all; a later write replaces it.
"""

import contextlib
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from devices.errors import InputError
from tasks.bundle.record import BundleError

SHARED = frozenset({"exports", "runners", "labs"})
"""The first folders of all names that farms and labs share."""
_MAX_BYTES = 64 << 20
"""Of a file that is read at once; a lab's order of 300 exports has some 10 MB."""


class TooLargeError(BundleError):
    """A file is larger than any that farms and labs write; it was not read."""


@dataclass(frozen=True)
class BlobStore:
    """Files by name, below a folder or a URL; every method raises BundleError if the storage does not answer."""

    location: str

    def put(self, name: str, source: Path) -> None:
        with storage_errors(self.location, f"{name} cannot be written"):
            self._fs.put_file(str(source), self._path(name))

    def get(self, name: str, target: Path) -> bool:
        """Write the file of this name to `target`; return False if there is none."""
        with storage_errors(self.location, f"{name} cannot be fetched"):
            try:
                self._fs.get_file(self._path(name), str(target))
            except FileNotFoundError:
                return False
        return True

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name; in a local folder it counts as used now."""
        with storage_errors(self.location, f"{name} cannot be found"):
            return bool(self._fs.isfile(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        with storage_errors(self.location, f"{name} cannot be written"):
            self._fs.pipe_file(self._path(name), content)

    def read(self, name: str) -> bytes | None:
        """Return the content of this name; None if there is none. Raises TooLargeError."""
        with storage_errors(self.location, f"{name} cannot be read"):
            try:
                content = bytes(self._fs.cat_file(self._path(name), start=0, end=_MAX_BYTES + 1))
            except FileNotFoundError:
                return None
        if len(content) > _MAX_BYTES:
            raise TooLargeError(f"{self.location}/{name}: has more than {_MAX_BYTES} bytes, which is the limit")
        return content

    def names(self, folder: str) -> list[str]:
        """Return the names of all JSON files below `folder`, relative to it."""
        if self._lacks(folder):
            return []
        with storage_errors(self.location, f"{folder} cannot be listed"):
            paths = self._fs.find(self._path(folder))
            return sorted(path.rpartition(f"{folder}/")[2] for path in paths if path.endswith(".json"))

    def contents(self, folder: str) -> dict[str, bytes | Exception]:
        """Return the content of each JSON file in `folder` by its path, or the error of reading it."""
        if self._lacks(folder):
            return {}
        with storage_errors(self.location, f"{folder} cannot be read"):
            entries = self._fs.find(self._path(folder), maxdepth=1, withdirs=True, detail=True)
            sizes = {path: int(entries[path]["size"]) for path in sorted(entries) if path.endswith(".json")}
            return read_files(self._fs, sizes, _MAX_BYTES)

    def remove(self, folder: str) -> None:
        """Remove all files whose name begins with `folder`/."""
        with storage_errors(self.location, f"{folder} cannot be removed"), contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._path(folder), recursive=True)

    def _lacks(self, folder: str) -> bool:
        """Return whether a local folder is missing: that is seen without fsspec, which takes 0.1 s to import."""
        try:
            return "://" not in self.location and not Path(self.location, folder).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # fsspec reports it
            return False

    @property
    def _fs(self) -> Any:
        return file_system(self.location)[0]

    def _path(self, name: str) -> str:
        return f"{file_system(self.location)[1]}/{name}"


@cache
def file_system(location: str) -> tuple[Any, str]:
    """Return fsspec's file system of a folder or a URL, which keeps no listings, and the path in it.

    Raises InputError for a URL that is not supported, or whose package is missing.
    """
    if "://" not in location:
        from tasks.store.complete_files import CompleteFiles  # fsspec is slow to import; a list of sweeps needs none

        return CompleteFiles(), location
    from fsspec.core import url_to_fs

    scheme = location.partition("://")[0]
    try:
        fs, path = url_to_fs(location, use_listings_cache=False)
    except ImportError:
        raise InputError(
            f"{location}: the package for {scheme} is missing; install etfarm[s3] for S3, or fsspec's package for it"
        ) from None
    except ValueError as error:
        raise InputError(f"{location}: {scheme} is not supported ({error}); use s3://bucket/prefix") from None
    return fs, str(path).rstrip("/")


def validate_location(location: str, option: str = "--bundles") -> str:
    """Return the URL of an option; raises InputError if it is not supported or contains credentials."""
    if "@" in urllib.parse.urlsplit(location).netloc:
        scheme = location.partition("://")[0]
        raise InputError(
            f"{option} {scheme}://...: the location contains credentials; remove them and set them in the environment "
            "(for S3, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        )
    file_system(location)
    return location


def read_files(fs: Any, sizes: Mapping[str, int], max_bytes: int) -> dict[str, bytes | Exception]:
    """Return the content of each file by its path, or the error of reading it.

    `sizes` are those that the storage lists; no more is read, and nothing of a file with more than `max_bytes`.
    """
    # A range of 0 bytes cannot be requested.
    readable = {path: size for path, size in sizes.items() if 0 < size <= max_bytes}
    results = fs.cat_ranges(list(readable), [0] * len(readable), list(readable.values())) if readable else []
    contents: dict[str, bytes | Exception] = dict.fromkeys(sizes, b"") | dict(zip(readable, results, strict=True))
    for path, size in sizes.items():
        if size > max_bytes:
            contents[path] = BundleError(f"{path}: has {size} bytes; the limit is {max_bytes}")
    return contents


@contextlib.contextmanager
def storage_errors(location: str, what: str) -> Iterator[None]:
    """Turn an error of the storage in this block into a BundleError; `what` states what failed."""
    try:
        yield
    except _error_types() as error:
        cause = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        is_remote = "://" in location
        remedy = "check the location, the network and the credentials" if is_remote else "check the folder and its disk"
        raise BundleError(f"{location}: {what} ({cause}); {remedy}") from error


def _error_types() -> tuple[type[Exception], ...]:
    """Return what fsspec's file systems raise; errors of S3 only with the extra `s3`."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return (OSError, NotImplementedError)
    return (OSError, NotImplementedError, BotoCoreError, ClientError)
