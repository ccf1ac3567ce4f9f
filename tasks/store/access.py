"""Access to stored files: the file system of a folder or of a URL (fsspec's), and its errors in one sentence."""

import contextlib
import os
import shutil
import urllib.parse
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from devices.errors import InputError
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


def checked_location(location: str) -> str:
    """Return the URL; raises InputError if it is not supported or contains credentials."""
    if "@" in urllib.parse.urlsplit(location).netloc:
        scheme = location.partition("://")[0]
        raise InputError(
            f"--bundles {scheme}://...: the location contains credentials; remove them and set them in the environment "
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


def _storage_errors() -> tuple[type[Exception], ...]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return (OSError,)
    return (OSError, BotoCoreError, ClientError)


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

    def cat_file(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def cat(self, paths: Sequence[str], on_error: str) -> dict[str, bytes | Exception]:
        contents: dict[str, bytes | Exception] = {}
        for path in paths:
            try:
                contents[path] = self.cat_file(path)
            except OSError as error:
                contents[path] = error
        return contents

    def isfile(self, path: str) -> bool:
        """Return whether there is a file; its time becomes that of its last use, for `etfarm prune`."""
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def find(self, folder: str) -> list[str]:
        return [str(path) for path in Path(folder).rglob("[!.]*")]

    def rm(self, folder: str, recursive: bool) -> None:
        shutil.rmtree(folder)
