"""Folders as one file: a tar, compressed with zstd, with a checksum.

An archive carries an export or a runner between machines, or keeps the bundles of a sweep. `<sweep_id>.tar.zst` then
contains `<sweep_id>/<session_id>/<file>`, every session.json first, so that the records of a sweep are read without its
other files. `tar --zstd -xf` in the folder of the bundles restores the folders that were packed, and an archive that
`tar --zstd -cf` made of them is read as well, to its end. tasks/store/tar.py reads them within limits.
"""

import hashlib
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from backports import zstd

from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError
from tasks.bundle.session_json import parse_record
from tasks.store.find import find_results
from tasks.store.folder import Verified
from tasks.store.tar import RECORDS_FIRST, ArchiveError, files_of_bundles, members, reading

SUFFIX = ".tar.zst"


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


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive to `folder`; they are not checked.

    Raises ArchiveError if the archive is damaged or has entries outside the folder.
    """
    with reading(archive):
        for tar, member in members(archive):
            tar.extract(member, folder, filter="data")


def unpack_bundles(archive: Path, folder: Path, texts: Mapping[str, bytes]) -> None:
    """Write the bundles whose session.json files are `texts`, by session id: the files that these list, and no others.

    The files are not checked. Raises ArchiveError if the archive is damaged.
    """
    listed = {session_id: _listed(text) for session_id, text in texts.items()}
    with reading(archive):
        for each in files_of_bundles(archive):
            if each.name in listed.get(each.session_id, ()):
                target = folder / each.sweep_id / each.session_id / each.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as stream:
                    shutil.copyfileobj(each.stream, stream)


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
    """Yield the id of each session and the content of its session.json; nothing if there is no archive.

    Raises ArchiveError if the archive is damaged as far as it is read: to the other files, if the farm packed it.
    """
    if archive.is_file():
        with reading(archive):
            for each in files_of_bundles(archive):
                if each.name == RECORD:
                    yield each.session_id, each.stream.read()
                elif each.comes_after_all_records:
                    return


def verify_archive(archive: Path, sweep_id: str) -> Iterator[Verified]:
    """Read every file of an archive and compare it with its hash; an unreadable archive is one damage."""
    texts: dict[str, bytes] = {}
    found: dict[str, dict[str, str]] = {}
    try:
        with reading(archive):
            for each in files_of_bundles(archive):
                if each.name == RECORD:
                    texts[each.session_id] = each.stream.read()
                else:
                    of_session = found.setdefault(each.session_id, {})
                    of_session[each.name] = hashlib.file_digest(each.stream, "sha256").hexdigest()
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


def _listed(text: bytes) -> frozenset[str]:
    """Return the files that a session.json lists, and itself; only that if it is damaged, which the load reports."""
    try:
        return frozenset({RECORD, *parse_record(text, RECORD).files})
    except BundleError:
        return frozenset({RECORD})


def _write(target: BinaryIO, files: Iterable[tuple[str, Path]]) -> None:
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    with (
        zstd.open(target, "wb", options=options) as stream,
        tarfile.open(fileobj=stream, mode="w|", pax_headers=RECORDS_FIRST) as tar,
    ):
        for name, path in files:
            tar.add(path, name, recursive=False)
