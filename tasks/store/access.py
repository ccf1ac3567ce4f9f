"""Access to stored files: the file system of a folder or of a URL (fsspec's), and its errors in one sentence."""

import contextlib
import os
import shutil
import sys
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.bundle.record import BundleError
from tasks.store.files import write_complete


@contextlib.contextmanager
def reported(location: str, what: str) -> Iterator[None]:
    """Turn an error of the storage into a BundleError."""
    try:
        yield
    except _storage_errors() as error:
        cause = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        is_remote = "://" in location
        way_on = "check the location, the network and the credentials" if is_remote else "check the folder and its disk"
        raise BundleError(f"{location}: {what} ({cause}); {way_on}") from error


def checked_location(location: str, option: str = "--bundles") -> str:
    """Return the URL of an option; raises InputError if it is not supported or contains credentials."""
    if "@" in urllib.parse.urlsplit(location).netloc:
        scheme = location.partition("://")[0]
        raise InputError(
            f"{option} {scheme}://...: the location contains credentials; remove them and set them in the environment "
            "(for S3, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        )
    file_system(location)
    return location


@cache
def file_system(location: str) -> tuple[Any, str]:
    """Return the file system of a folder or a URL, which keeps no listings, and the path in it."""
    if "://" not in location:
        return _Folder(), location
    from fsspec.core import url_to_fs

    scheme = location.partition("://")[0]
    try:
        file_system, path = url_to_fs(location, use_listings_cache=False)
    except ImportError:
        raise InputError(
            f"{location}: the package for {scheme} is missing; install etfarm[s3] for S3, or fsspec's package for it"
        ) from None
    except ValueError as error:
        raise InputError(f"{location}: {scheme} is not supported ({error}); use s3://bucket/prefix") from None
    return file_system, str(path).rstrip("/")


def read_files(fs: Any, sizes: Mapping[str, int], most_bytes: int) -> dict[str, bytes | Exception]:
    """Return the content of each file by its path, no longer than its listed size, or why it cannot be read.

    A file of more than `most_bytes` is not read; the errors of the storage are returned as well.
    """
    some = {path: size for path, size in sizes.items() if 0 < size <= most_bytes}  # nothing can be asked of 0 bytes
    got = fs.cat_ranges(list(some), [0] * len(some), list(some.values())) if some else []
    contents: dict[str, bytes | Exception] = dict.fromkeys(sizes, b"") | dict(zip(some, got, strict=True))
    too_large = {path: size for path, size in sizes.items() if size > most_bytes}
    for path, size in too_large.items():
        contents[path] = BundleError(f"{path}: has {size} bytes; the limit is {most_bytes}")
    return contents


def _storage_errors() -> tuple[type[Exception], ...]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return (OSError, NotImplementedError)
    return (OSError, NotImplementedError, BotoCoreError, ClientError)


class _Folder:
    """The methods of fsspec's file systems that tasks/store/shelf.py uses, for local files.

    Unlike fsspec's own, a file appears completely or not at all, also after a power failure, and a farm without object
    storage does not import fsspec.
    """

    def put_file(self, source: str, target: str) -> None:
        with Path(source).open("rb") as stream:
            write_complete(Path(target), stream)

    get_file = put_file

    def pipe_file(self, path: str, content: bytes) -> None:
        write_complete(Path(path), content)

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        try:
            with open_untrusted(Path(path), sys.maxsize) as stream:
                stream.seek(start)
                return stream.read(end - start)
        except UntrustedFileError as error:
            if error.is_missing:
                raise FileNotFoundError(path) from None
            raise BundleError(str(error)) from None

    def cat_ranges(self, paths: Sequence[str], starts: Sequence[int], ends: Sequence[int]) -> list[bytes | Exception]:
        contents: list[bytes | Exception] = []
        for path, start, end in zip(paths, starts, ends, strict=True):
            try:
                contents.append(self.cat_file(path, start, end))
            except (BundleError, OSError) as error:
                contents.append(error)
        return contents

    def isfile(self, path: str) -> bool:
        """Return whether there is a file; its time becomes that of its last use, for `etfarm warehouse prune`."""
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def find(self, folder: str, detail: bool = False) -> dict[str, dict[str, int]]:
        return {str(path): {"size": path.lstat().st_size if detail else 0} for path in Path(folder).rglob("[!.]*")}

    def rm(self, folder: str, recursive: bool) -> None:
        shutil.rmtree(folder)
