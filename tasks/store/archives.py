"""Folders as one file: a tar, compressed with zstd, with a checksum. Archives are foreign input.

An archive carries an export or a runner between machines, or keeps the bundles of a sweep. `<sweep_id>.tar.zst`
contains `<sweep_id>/<session_id>/<file>`. Every session.json is at its beginning, so the records of a sweep are read
without the other files. `tar --zstd -xf` in the folder of the bundles restores the folders. An archive that
`tar --zstd -cf` wrote can be read as well; reading its records takes a pass over all of it.

A few kilobytes can expand to terabytes (a zip bomb). Therefore the headers of an entry, the size of a file and the
ratio of the expansion are limited.
"""

import contextlib
import hashlib
import io
import shutil
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tarfile import GNUTYPE_LONGLINK, GNUTYPE_LONGNAME, SOLARIS_XHDTYPE, XGLTYPE, XHDTYPE
from typing import IO, Any, BinaryIO, Self, cast

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.bundle.names import MAX_FILE_BYTES, MAX_RECORD_BYTES, RECORD, checked_file_name
from tasks.bundle.record import BundleError, parse_record
from tasks.store.blob_store import BlobStore
from tasks.store.files import work_folder
from tasks.store.folder import BundleCheck, find_results

SUFFIX = ".tar.zst"
_RECORDS_FIRST = {"comment": "every session.json is before the other files"}
"""The header of archives that the farm packs: reading ends where the other files begin."""
_BLOCK_BYTES = 1 << 20
_MAX_HEADER_BYTES = 1 << 16
_HEADERS = {XHDTYPE, XGLTYPE, SOLARIS_XHDTYPE, GNUTYPE_LONGNAME, GNUTYPE_LONGLINK}
_MAX_EXPANSION = 1000
"""Largest ratio of expanded to compressed size; ETDumps expand 3 to 30 times."""
_MIN_LIMITED_BYTES = 1 << 30
"""Up to this expanded size any ratio is allowed: a model of zeros expands 30,000 times."""


class ArchiveError(BundleError):
    """An archive is damaged; `cause` is why."""

    def __init__(self, archive: Path, error: Exception) -> None:
        self.cause = f"the archive is damaged ({error})"
        super().__init__(f"{archive}: {self.cause}; restore it from a backup")


@dataclass(frozen=True)
class _PackedFile:
    """A file in an archive of bundles; `stream` is its content until the next one is read."""

    sweep_id: str
    session_id: str
    name: str
    stream: io.BufferedReader
    comes_after_all_records: bool


class _Member(tarfile.TarInfo):
    """An entry; ReadError if a long name or other header exceeds its limit, before that is read."""

    def _proc_member(self, tar: tarfile.TarFile) -> Self | None:
        # `frombuf` is not called for every header in all versions of Python; this is.
        if self.type in _HEADERS and self.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"the name of an entry has {self.size} bytes")
        return cast(Self, cast(Any, super())._proc_member(tar))


class _LimitedStream:
    """Decompressed content; `read` raises ReadError above the larger of 1 GiB and 1000 times `packed_bytes`."""

    def __init__(self, stream: IO[bytes], packed_bytes: int) -> None:
        self._stream = stream
        self._left_bytes = max(_MIN_LIMITED_BYTES, _MAX_EXPANSION * packed_bytes)

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        self._left_bytes -= len(content)
        if self._left_bytes < 0:
            raise tarfile.ReadError(f"it expands to more than {_MAX_EXPANSION} times its size")
        return content


def _read_entries(archive: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield each entry and its tar. Call it inside `_archive_errors`, and read an entry before the next one."""
    with open_untrusted(archive.resolve(), 1 << 62) as file:
        packed_bytes = archive.stat().st_size
        with zstd.open(file, "rb") as expanded:
            stream = cast(Any, _LimitedStream(cast(IO[bytes], expanded), packed_bytes))
            with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
                for member in tar:
                    yield tar, member
                    cast(Any, tar).members.clear()  # a tar keeps all that it has read
                while stream.read(_BLOCK_BYTES):  # to the end, where a truncation is detected
                    pass


def _read_bundle_files(archive: Path) -> Iterator[_PackedFile]:
    """Yield each file in an archive of bundles. Call it inside `_archive_errors`, and read a file before the next one.

    Raises ReadError for a file above its limit and, in an archive that the farm packed, for a wrong order.
    """
    recorded: set[str] = set()
    has_other = False
    for tar, member in _read_entries(archive):
        if member.isdir():
            continue
        sweep_id, session_id, name = _parse_name(member)
        is_record = name == RECORD
        max_bytes = MAX_RECORD_BYTES if is_record else MAX_FILE_BYTES
        if member.size > max_bytes:
            raise tarfile.ReadError(f"{member.name} has {member.size} bytes; the limit is {max_bytes}")
        is_packed_here = tar.pax_headers.get("comment") == _RECORDS_FIRST["comment"]
        has_other |= not is_record
        if is_record:
            recorded.add(session_id)
        if is_packed_here and has_other and (is_record or session_id not in recorded):
            raise tarfile.ReadError(f"the session.json of {session_id} is not before the other files")
        stream = cast(io.BufferedReader, tar.extractfile(member))
        yield _PackedFile(sweep_id, session_id, name, stream, is_packed_here and has_other)


def _parse_name(member: tarfile.TarInfo) -> tuple[str, str, str]:
    """Return sweep id, session id and file name; raises ReadError for anything but a plain file of a bundle."""
    steps = member.name.removeprefix("./").split("/")
    with contextlib.suppress(ValueError):
        if _is_plain(member) and len(steps) == 3:
            sweep_id, session_id, name = map(checked_file_name, steps)
            return sweep_id, session_id, name
    raise tarfile.ReadError(f"unexpected entry {member.name}")


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()


@contextlib.contextmanager
def _archive_errors(archive: Path) -> Iterator[None]:
    """Turn the errors of reading an archive in this block into ArchiveError, or BundleError if it cannot be opened."""
    try:
        yield
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        raise ArchiveError(archive, error) from None
    except RecursionError:
        raise ArchiveError(archive, tarfile.ReadError("the headers of an entry are nested")) from None
    except UntrustedFileError as error:
        raise BundleError(str(error)) from None


def upload_folder(store: BlobStore, name: str, folder: Path) -> None:
    """Upload a folder as one archive; raises BundleError if the storage does not answer."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with work_folder(folder.parent) as aside:
        with (aside / "archive").open("wb") as target:
            _write_archive(target, ((str(path.relative_to(folder)), path) for path in files))
        store.put(name, aside / "archive")


def download_folder(store: BlobStore, name: str, folder: Path) -> bool:
    """Write the files of an uploaded folder, unchecked, to `folder`; return False if there is no archive of this name.

    Raises ArchiveError if the archive is damaged or leads out of `folder`.
    """
    with work_folder(folder.parent) as aside:
        if not store.get(name, aside / "archive"):
            return False
        unpack(aside / "archive", folder)
    return True


def pack_bundles(target: BinaryIO, sweep_id: str, bundles: Mapping[str, Path]) -> None:
    files = [
        (path.name != RECORD, f"{sweep_id}/{session_id}/{path.name}", path)
        for session_id, folder in bundles.items()
        for path in folder.iterdir()
    ]
    _write_archive(target, ((name, path) for _, name, path in sorted(files)))


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive to `folder`, without checking their content; programs stay executable.

    Raises ArchiveError if the archive is damaged, or an entry is no plain file or leads out of `folder`.
    """
    with _archive_errors(archive):
        for tar, member in _read_entries(archive):
            steps = member.name.split("/")
            if not _is_plain(member) or not all(steps) or {".", ".."}.intersection(steps):
                raise tarfile.ReadError(f"unexpected entry {member.name}")
            target = folder.joinpath(*steps)
            _write_file(target, cast(IO[bytes], tar.extractfile(member)))
            target.chmod(0o755 if member.mode & 0o100 else 0o644)


def unpack_bundles(archive: Path, folder: Path, texts: Mapping[str, bytes]) -> None:
    """Write bundles to `folder`, without checking them: of each, session.json and the files that it lists.

    `texts` are the session.json files by session id. Raises ArchiveError if the archive is damaged.
    """
    listed = {key: {RECORD} for key in texts}  # nothing else if session.json is damaged, which the load reports
    for session_id, text in texts.items():
        with contextlib.suppress(BundleError):
            listed[session_id] = {RECORD, *parse_record(text, RECORD).files}
    with _archive_errors(archive):
        for each in _read_bundle_files(archive):
            if each.name in listed.get(each.session_id, ()):
                _write_file(folder / each.sweep_id / each.session_id / each.name, each.stream)


def _write_file(target: Path, content: IO[bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as stream:
        shutil.copyfileobj(content, stream)


def archive_path(root: Path, sweep_id: str) -> Path:
    return root / f"{sweep_id}{SUFFIX}"


def find_archives(path: Path) -> list[Path]:
    """Return the archives in the folder `path`, or `path` itself if it is one."""
    if path.is_file():
        return [path] if path.name.endswith(SUFFIX) else []
    return sorted(path.glob(f"[!.]*{SUFFIX}"))


def archives_and_others(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the archives among and in `paths`, and the other paths to load.

    Those are the paths that contain a bundle or an ETDump, and those that contain nothing, which the load reports.
    """
    archives = list(dict.fromkeys(archive for path in paths for archive in find_archives(path)))
    others = [path for path in paths if path not in archives and (not find_archives(path) or any(find_results(path)))]
    return archives, others


def packed_records(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the id of each session and the content of its session.json; nothing if there is no archive.

    An archive that the farm packed is read only up to its other files. Raises ArchiveError for damage in what is read,
    BundleError if the archive cannot be opened.
    """
    if archive.is_file():
        with _archive_errors(archive):
            for each in _read_bundle_files(archive):
                if each.name == RECORD:
                    yield each.session_id, each.stream.read()
                elif each.comes_after_all_records:
                    return


def verify_archive(archive: Path, sweep_id: str) -> Iterator[BundleCheck]:
    """Compare every file of an archive with its hash; yield the result of each bundle.

    If the archive is damaged, its result comes first, under the archive's name; bundles are compared as far as it was
    read.
    """
    texts: dict[str, bytes] = {}
    hashes: dict[str, dict[str, str]] = {}
    try:
        with _archive_errors(archive):
            for each in _read_bundle_files(archive):
                if each.name == RECORD:
                    texts[each.session_id] = each.stream.read()
                else:
                    of_session = hashes.setdefault(each.session_id, {})
                    of_session[each.name] = hashlib.file_digest(each.stream, "sha256").hexdigest()
    except ArchiveError as error:
        yield BundleCheck(archive.name, sweep_id, None, str(error))
    for session_id, text in texts.items():
        damage, sha256, files = None, hashlib.sha256(text).hexdigest(), {}
        try:
            record = parse_record(text, f"{archive}: {session_id}/{RECORD}")
            files = {name: file.sha256 for name, file in record.files.items()}
            if hashes.get(session_id, {}) != files:
                cause = "do not match their hashes; restore the archive from a backup"
                damage = f"{archive}: the files of {session_id} {cause}"
        except BundleError as error:
            damage = str(error)
        yield BundleCheck(session_id, sweep_id, sha256, damage, len(files))


def _write_archive(target: BinaryIO, files: Iterable[tuple[str, Path]]) -> None:
    """Write files as a compressed tar with a checksum, in this order; each has its name in the archive and its path."""
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    with (
        zstd.open(target, "wb", options=options) as stream,
        tarfile.open(fileobj=stream, mode="w|", pax_headers=_RECORDS_FIRST) as tar,
    ):
        for name, path in files:
            tar.add(path, name, recursive=False)
