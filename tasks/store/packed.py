"""Bundles of a sweep in one archive, `<sweep_id>.tar.zst`: a tar of `<sweep_id>/<session_id>/<file>`, compressed.

Every session.json comes first, so that the records of a sweep are read without its other files. `tar --zstd -xf` in the
folder of the bundles restores the folders that were packed.
"""

import contextlib
import hashlib
import io
import shutil
import tarfile
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from backports import zstd

from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, SessionRecord, parse_record
from tasks.store.find import find_results
from tasks.store.folder import Verified

SUFFIX = ".tar.zst"
_BLOCK_BYTES = 1 << 20


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
            for session_id, name, stream in _members(archive):
                if name != RECORD:
                    return
                yield session_id, stream.read()


def unpack(archive: Path, wanted: Container[str], folder: Path) -> list[Path]:
    """Write the bundles of the `wanted` sessions to `folder/<session_id>` and return these folders, unchecked."""
    written: dict[str, Path] = {}
    with _damage(archive):
        for session_id, name, stream in _members(archive):
            if session_id in wanted:
                bundle = written.setdefault(session_id, folder / session_id)
                bundle.mkdir(parents=True, exist_ok=True)
                with (bundle / name).open("wb") as target:
                    shutil.copyfileobj(stream, target, _BLOCK_BYTES)
    return list(written.values())


def write_archive(target: BinaryIO, sweep_id: str, bundles: Mapping[str, Path]) -> None:
    """Write the folders of bundles, by session id, as one archive."""
    files = [
        (path.name != RECORD, f"{sweep_id}/{session_id}/{path.name}", path)
        for session_id, folder in bundles.items()
        for path in folder.iterdir()
    ]
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    with zstd.open(target, "wb", options=options) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for _, name, path in sorted(files):
            tar.add(path, name, recursive=False)


def verify_archive(archive: Path, sweep_id: str) -> Iterator[Verified]:
    """Read every file of an archive and compare it with its hash; an unreadable archive is one damage."""
    records: dict[str, tuple[str, SessionRecord | BundleError]] = {}
    found: dict[str, dict[str, str]] = {}
    try:
        with _damage(archive):
            for session_id, name, stream in _members(archive):
                if name == RECORD:
                    content = stream.read()
                    records[session_id] = hashlib.sha256(content).hexdigest(), _parsed(archive, session_id, content)
                else:
                    found.setdefault(session_id, {})[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    except BundleError as error:
        yield Verified(archive.name, sweep_id, None, str(error))
    for session_id, (sha256, record) in records.items():
        if isinstance(record, BundleError):
            yield Verified(session_id, sweep_id, sha256, str(record))
            continue
        files = {name: file.sha256 for name, file in record.files.items()}
        differs = found.get(session_id, {}) != files
        damage = f"{archive}: the files of {session_id} do not match their hashes; restore the archive from a backup"
        yield Verified(session_id, sweep_id, sha256, damage if differs else None, len(files))


def _parsed(archive: Path, session_id: str, content: bytes) -> SessionRecord | BundleError:
    try:
        return parse_record(content, f"{archive}: {session_id}/{RECORD}")
    except BundleError as error:
        return error


def _members(archive: Path) -> Iterator[tuple[str, str, io.BufferedReader]]:
    """Yield session id, file name and content of each file; call it inside `_damage`, and read the content there."""
    with zstd.open(archive, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            steps = member.name.split("/")
            content = tar.extractfile(member)
            if content is None or len(steps) != 3 or ".." in steps or not all(steps):
                raise tarfile.ReadError(f"unexpected entry {member.name}")
            yield steps[1], steps[2], cast(io.BufferedReader, content)
        while stream.read(_BLOCK_BYTES):  # to the end, where a truncated archive shows
            pass


@contextlib.contextmanager
def _damage(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        raise BundleError(f"{archive}: the archive is damaged ({error}); restore it from a backup") from None
