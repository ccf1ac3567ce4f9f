"""The bundle of a session in a folder: published in one step, never changed, checked on every read."""

import contextlib
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from devices.untrusted import UntrustedFileError, hash_untrusted, open_untrusted, read_untrusted
from tasks.bundle.names import MOST_FILE_BYTES, MOST_RECORD_BYTES, RECORD
from tasks.bundle.record import BundleError, FileRecord, SessionRecord
from tasks.bundle.session_json import parse_record, record_text
from tasks.store.files import publish_folder, sha256_of


@dataclass(frozen=True)
class Verified:
    """A bundle whose files were read and compared with their hashes."""

    session_id: str
    sweep_id: str
    sha256: str | None
    """Of session.json, or of an ETDump outside any bundle; None if it cannot be read."""
    damage: str | None = None
    """What is wrong with it, in one sentence."""
    files: int = 0


def publish_bundle(bundles: Path, record: SessionRecord, collected: Path) -> SessionRecord:
    """Write the bundle of `record` with the files of the folder `collected`; return the record as it is on disk.

    The folder `bundles/<sweep_id>/<session_id>` is published completely or not at all; `record.files` is set here.
    Raises BundleError if the disk is full or read-only.
    """
    final = bundles / record.sweep.sweep_id / record.session_id
    try:
        with publish_folder(final) as aside:
            files = {}
            for source in sorted(path for path in collected.iterdir() if path.is_file()):
                target = aside / source.name
                shutil.copyfile(source, target)
                files[source.name] = FileRecord(sha256=sha256_of(target), bytes=target.stat().st_size)
            complete = record.model_copy(update={"files": files})
            (aside / RECORD).write_bytes(record_text(complete))
    except OSError as error:
        raise BundleError(
            f"{final}: cannot write the bundle ({error.strerror or error}); no partial bundle is left"
        ) from None
    return read_record(final)


def read_record(folder: Path) -> SessionRecord:
    """Read and check session.json alone; raises BundleError with one sentence."""
    path = folder / RECORD
    try:
        return parse_record(read_untrusted(path, MOST_RECORD_BYTES), str(path))
    except UntrustedFileError as error:
        if not error.is_missing:
            raise BundleError(str(error)) from None
        way_on = "restore it from a backup, or name its .etdump file to load it without its session"
        raise BundleError(f"{folder}: damaged bundle: session.json is missing; {way_on}") from None


def record_beside(file: Path) -> SessionRecord | None:
    """Return the record of the session that a file belongs to; None outside a bundle, and of a damaged record."""
    with contextlib.suppress(BundleError):
        record = read_record(file.parent)
        return record if file.name in record.files else None
    return None


def read_bundle(folder: Path) -> SessionRecord:
    """Read session.json and check every file's size and hash against it; raises BundleError with one sentence."""
    record = read_record(folder)
    for name, wanted in record.files.items():
        if not _matches(folder / name, wanted):
            cause = "the file does not match its hash in session.json; restore it from a backup"
            raise BundleError(f"{folder / name}: {cause}")
    return record


def _matches(path: Path, wanted: FileRecord) -> bool:
    """Return whether a file has the size and the hash that session.json states; raises BundleError without one."""
    try:
        with open_untrusted(path, MOST_FILE_BYTES) as stream:
            has_size = os.fstat(stream.fileno()).st_size == wanted.bytes
            return has_size and hashlib.file_digest(stream, "sha256").hexdigest() == wanted.sha256
    except UntrustedFileError as error:
        cause = f"{path}: the file is missing from its bundle; restore the bundle from a backup"
        raise BundleError(cause if error.is_missing else str(error)) from None


def content_sha256(path: Path) -> str:
    """Return the hash that a bundle's folder or a loose ETDump is known by; raises UntrustedFileError.

    That of a bundle is its session.json's, which holds the hashes of all other files.
    """
    if path.is_dir():
        return hash_untrusted(path / RECORD, MOST_RECORD_BYTES)
    return hash_untrusted(path, MOST_FILE_BYTES)
