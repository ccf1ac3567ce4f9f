"""Folders as one file: a tar, compressed with zstd, with a checksum.

An archive carries an export or a runner between machines, or keeps the bundles of a sweep. `<sweep_id>.tar.zst` then
contains `<sweep_id>/<session_id>/<file>`, every session.json first, so that the records of a sweep are read without its
other files. `tar --zstd -xf` in the folder of the bundles restores the folders that were packed.
"""

import contextlib
import hashlib
import io
import tarfile
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from backports import zstd

from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, parse_record
from tasks.store.find import find_results
from tasks.store.folder import Verified

SUFFIX = ".tar.zst"
_BLOCK_BYTES = 1 << 20


class ArchiveError(BundleError):
    """An archive is damaged; `cause` is why."""

    def __init__(self, archive: Path, error: Exception) -> None:
        self.cause = f"the archive is damaged ({error})"
        super().__init__(f"{archive}: {self.cause}; restore it from a backup")


def pack(folder: Path, archive: Path) -> None:
    """Write all files of `folder` to `archive`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with archive.open("wb") as target:
        _write(target, ((str(path.relative_to(folder)), path) for path in files))


def pack_bundles(target: BinaryIO, sweep_id: str, bundles: Mapping[str, Path]) -> None:
    """Write the folders of bundles, by session id, as one archive."""
    files = [
        (path.name != RECORD, f"{sweep_id}/{session_id}/{path.name}", path)
        for session_id, folder in bundles.items()
        for path in folder.iterdir()
    ]
    _write(target, ((name, path) for _, name, path in sorted(files)))


def unpack(archive: Path, folder: Path, sessions: Container[str] | None = None) -> None:
    """Write the files of an archive to `folder`, or only the bundles of some `sessions`; they are not checked.

    Raises ArchiveError if the archive is damaged or has entries outside the folder.
    """
    with _damage(archive):
        for tar, member in _members(archive):
            if sessions is None or _session_and_file(member)[0] in sessions:
                tar.extract(member, folder, filter="data")


def archive_of(root: Path, sweep_id: str) -> Path:
    """Return where the archive of a sweep is."""
    return root / f"{sweep_id}{SUFFIX}"


def find_archives(path: Path) -> list[Path]:
    """Return the archives in the folder `path`, or `path` itself if it is one."""
    if path.is_file():
        return [path] if path.name.endswith(SUFFIX) else []
    return sorted(path.glob(f"[!.]*{SUFFIX}"))


def archives_and_others(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the archives among and in some paths, and the paths that contain anything else to load."""
    archives = list(dict.fromkeys(archive for path in paths for archive in find_archives(path)))
    others = [path for path in paths if path not in archives and (not find_archives(path) or any(find_results(path)))]
    return archives, others


def packed_records(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the id of each session and the content of its session.json; nothing if there is no archive."""
    if archive.is_file():
        with _damage(archive):
            for session_id, name, stream in _packed_files(archive):
                if name != RECORD:
                    return
                yield session_id, stream.read()


def verify_archive(archive: Path, sweep_id: str) -> Iterator[Verified]:
    """Read every file of an archive and compare it with its hash; an unreadable archive is one damage."""
    texts: dict[str, bytes] = {}
    found: dict[str, dict[str, str]] = {}
    try:
        with _damage(archive):
            for session_id, name, stream in _packed_files(archive):
                if name == RECORD:
                    texts[session_id] = stream.read()
                else:
                    found.setdefault(session_id, {})[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    except ArchiveError as error:
        yield Verified(archive.name, sweep_id, None, str(error))
    for session_id, text in texts.items():
        damage, sha256, files = None, hashlib.sha256(text).hexdigest(), {}
        try:
            record = parse_record(text, f"{archive}: {session_id}/{RECORD}")
            files = {name: file.sha256 for name, file in record.files.items()}
            if found.get(session_id, {}) != files:
                cause = "do not match their hashes; restore the archive from a backup"
                damage = f"{archive}: the files of {session_id} {cause}"
        except BundleError as error:
            damage = str(error)
        yield Verified(session_id, sweep_id, sha256, damage, len(files))


def _write(target: BinaryIO, files: Iterable[tuple[str, Path]]) -> None:
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    with zstd.open(target, "wb", options=options) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for name, path in files:
            tar.add(path, name, recursive=False)


def _members(archive: Path) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield each entry with the tar that it is read from; call it inside `_damage`, and read the entry there."""
    with zstd.open(archive, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            yield tar, member
        while stream.read(_BLOCK_BYTES):  # to the end, where a truncated archive shows
            pass


def _packed_files(archive: Path) -> Iterator[tuple[str, str, io.BufferedReader]]:
    """Yield session id, name and content of each file in an archive of bundles; as `_members`."""
    for tar, member in _members(archive):
        yield *_session_and_file(member), cast(io.BufferedReader, tar.extractfile(member))


def _session_and_file(member: tarfile.TarInfo) -> tuple[str, str]:
    steps = member.name.split("/")
    if not member.isreg() or len(steps) != 3 or ".." in steps or not all(steps):
        raise tarfile.ReadError(f"unexpected entry {member.name}")
    return steps[1], steps[2]


@contextlib.contextmanager
def _damage(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        raise ArchiveError(archive, error) from None
