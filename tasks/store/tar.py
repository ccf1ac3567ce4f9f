"""Read compressed archives that strangers may have made: a few kilobytes can stand for terabytes.

What is limited: the headers of an entry, the size of a file, and how far the whole expands.
"""

import contextlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast

from backports import zstd

from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.bundle.names import MOST_FILE_BYTES, MOST_RECORD_BYTES, RECORD, plain_name
from tasks.bundle.record import BundleError

RECORDS_FIRST = {"comment": "every session.json is before the other files"}
"""The header of archives that the farm packs: reading ends where the other files begin."""
_BLOCK_BYTES = 1 << 20
_MOST_HEADER_BYTES = 1 << 16
_HEADERS = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}
_MOST_TIMES = 1000
"""An archive of ETDumps expands 3 to 30 times, a model of zeros 30,000 times;"""
_ALWAYS_BYTES = 1 << 30
"""up to this, it may."""


class ArchiveError(BundleError):
    """An archive is damaged; `cause` is why."""

    def __init__(self, archive: Path, error: Exception) -> None:
        self.cause = f"the archive is damaged ({error})"
        super().__init__(f"{archive}: {self.cause}; restore it from a backup")


@dataclass(frozen=True)
class PackedFile:
    """A file in an archive of bundles; `stream` is its content until the next one is read."""

    sweep_id: str
    session_id: str
    name: str
    stream: io.BufferedReader
    comes_after_all_records: bool


class _Member(tarfile.TarInfo):
    """An entry whose long name or other description is not read if it is too long."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > _MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"the name of an entry has {member.size} bytes")
        return member


class _Expanding:
    """The content of a compressed file, which ends with an error when it expands too far."""

    def __init__(self, stream: IO[bytes], packed_bytes: int) -> None:
        self._stream = stream
        self._left_bytes = max(_ALWAYS_BYTES, _MOST_TIMES * packed_bytes)

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        self._left_bytes -= len(content)
        if self._left_bytes < 0:
            raise tarfile.ReadError(f"it expands to more than {_MOST_TIMES} times its size")
        return content


def members(archive: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield each entry with the tar that it is read from, to be read before the next one, all inside `reading`."""
    with open_untrusted(archive.resolve(), 1 << 62) as file:
        packed_bytes = archive.stat().st_size
        with zstd.open(file, "rb") as expanded:
            stream = cast(Any, _Expanding(cast(IO[bytes], expanded), packed_bytes))
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
                for member in tar:
                    yield tar, member
                    cast(Any, tar).members.clear()  # a tar keeps all that it has read
                while stream.read(_BLOCK_BYTES):  # to the end, where a truncated archive shows
                    pass


def files_of_bundles(archive: Path) -> Iterator[PackedFile]:
    """Yield each file in an archive of bundles, to be read before the next one, all inside `reading`."""
    recorded: set[str] = set()
    has_other = False
    for tar, member in members(archive):
        if member.isdir():
            continue
        sweep_id, session_id, name = _steps(member)
        is_record = name == RECORD
        most_bytes = MOST_RECORD_BYTES if is_record else MOST_FILE_BYTES
        if member.size > most_bytes:
            raise tarfile.ReadError(f"{member.name} has {member.size} bytes; the limit is {most_bytes}")
        is_packed_here = tar.pax_headers.get("comment") == RECORDS_FIRST["comment"]
        has_other |= not is_record
        if is_record:
            recorded.add(session_id)
        if is_packed_here and has_other and (is_record or session_id not in recorded):
            raise tarfile.ReadError(f"the session.json of {session_id} is not before the other files")
        stream = cast(io.BufferedReader, tar.extractfile(member))
        yield PackedFile(sweep_id, session_id, name, stream, is_packed_here and has_other)


def _steps(member: tarfile.TarInfo) -> tuple[str, str, str]:
    """Return sweep, session and file; raises ReadError for anything but a plain file of a bundle."""
    steps = member.name.removeprefix("./").split("/")
    with contextlib.suppress(ValueError):
        if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse() and len(steps) == 3:
            sweep_id, session_id, name = map(plain_name, steps)
            return sweep_id, session_id, name
    raise tarfile.ReadError(f"unexpected entry {member.name}")


@contextlib.contextmanager
def reading(archive: Path) -> Iterator[None]:
    """Turn the errors of reading an archive in this block into ArchiveError, or BundleError if it is no file."""
    try:
        yield
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        raise ArchiveError(archive, error) from None
    except RecursionError:
        raise ArchiveError(archive, tarfile.ReadError("the headers of an entry are nested")) from None
    except UntrustedFileError as error:
        raise BundleError(str(error)) from None
