"""fsspec's local files, as farms and labs share them in a folder."""

import contextlib
import os
import sys
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.bundle.record import BundleError
from tasks.store.files import write_complete


class CompleteFiles(LocalFileSystem):  # type: ignore[misc]
    """fsspec's local files, written completely or not at all, also after a power failure; reads only regular ones."""

    def put_file(self, path1: str, path2: str, **_: object) -> None:
        with Path(path1).open("rb") as stream:
            write_complete(Path(path2), stream)

    get_file = put_file

    def pipe_file(self, path: str, value: bytes, **_: object) -> None:
        write_complete(Path(path), value)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
        try:
            with open_untrusted(Path(path), sys.maxsize) as stream:
                stream.seek(start or 0)
                return stream.read(-1 if end is None else end - (start or 0))
        except UntrustedFileError as error:
            if error.is_missing:
                raise FileNotFoundError(path) from None
            raise BundleError(str(error)) from None

    def isfile(self, path: str) -> bool:
        """Return whether there is a file; its time becomes that of its last use, for `etfarm warehouse prune`."""
        if not Path(path).is_file():
            return False
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)
        return Path(path).is_file()
