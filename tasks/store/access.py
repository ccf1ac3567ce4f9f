"""Access to object storage through fsspec: its file system by URL, and its errors in one sentence."""

import contextlib
import urllib.parse
from collections.abc import Iterator
from functools import cache
from typing import Any

from devices.errors import InputError
from tasks.bundle.record import BundleError


@contextlib.contextmanager
def reported(location: str, what: str) -> Iterator[None]:
    """Turn an error of the storage into a BundleError."""
    try:
        yield
    except _storage_errors() as error:
        cause = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        raise BundleError(
            f"{location}: {what} ({cause}); check the location, the network and the credentials"
        ) from error


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
    """Return the file system of a URL, which keeps no listings, and the path in it."""
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
