"""Bundles in folders: each published in one step, never changed, checked on every read; and those below a folder."""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from devices.untrusted import UntrustedFileError, hash_untrusted, open_untrusted, read_untrusted
from tasks.bundle.names import MAX_FILE_BYTES, MAX_RECORD_BYTES, RECORD
from tasks.bundle.record import BundleError, FileRecord, SessionRecord, parse_record, record_text
from tasks.store.files import UNFINISHED, hash_file, publish_folder

_SESSION_ID = re.compile(r"[0-9a-f]{16}")
_COLLECTED = frozenset({"stdout.txt", "stderr.txt", "stats.json"})


@dataclass(frozen=True)
class BundleCheck:
    session_id: str
    sweep_id: str
    sha256: str | None
    """Of session.json, or of an ETDump outside any bundle; None if it cannot be read."""
    damage: str | None = None
    """One sentence; None if the bundle is intact."""
    files: int = 0
    """The number of compared files, without session.json."""


def publish_bundle(bundles: Path, record: SessionRecord, collected: Path) -> SessionRecord:
    """Write the bundle of `record` with the files of the folder `collected`; return the record as it is on disk.

    Nobody may write to these files any more: those of the bundle may be links to them.
    The folder `bundles/<sweep_id>/<session_id>` is published completely or not at all; `record.files` is set here.
    Raises BundleError if the disk is full or read-only.
    """
    final = bundles / record.sweep.sweep_id / record.session_id
    try:
        with publish_folder(final) as aside:
            files = {}
            for source in sorted(path for path in collected.iterdir() if path.is_file()):
                target = aside / source.name
                _link_or_copy(source, target)
                files[source.name] = FileRecord(sha256=hash_file(target), bytes=target.stat().st_size)
            complete = record.model_copy(update={"files": files})
            text = record_text(complete)
            (aside / RECORD).write_bytes(text)
    except OSError as error:
        raise BundleError(
            f"{final}: cannot write the bundle ({error.strerror or error}); no partial bundle is left"
        ) from None
    return complete if _read_text(final) == text else read_record(final)


def _link_or_copy(source: Path, target: Path) -> None:
    """Link a file to `target`, which costs less; copy it if a new file would inherit other rights from its folder."""
    folder = target.parent
    with contextlib.suppress(OSError):  # it is on another file system, or on one without links or attributes
        attributes = os.listxattr(folder) if sys.platform == "linux" else []  # such as an access list for new files
        if not attributes and not folder.stat().st_mode & stat.S_ISGID:
            os.link(source, target)
            return
    shutil.copyfile(source, target)


def read_record(folder: Path) -> SessionRecord:
    """Read and check session.json alone; raises BundleError with one sentence."""
    return parse_record(_read_text(folder), str(folder / RECORD))


def _read_text(folder: Path) -> bytes:
    """Return the content of session.json; raises BundleError with one sentence."""
    try:
        return read_untrusted(folder / RECORD, MAX_RECORD_BYTES)
    except UntrustedFileError as error:
        if not error.is_missing:
            raise BundleError(str(error)) from None
        remedy = "restore it from a backup, or name its .etdump file to load it without its session"
        raise BundleError(f"{folder}: damaged bundle: session.json is missing; {remedy}") from None


def record_beside(file: Path) -> SessionRecord | None:
    """Return the record of the session that a file belongs to; None outside a bundle, and of a damaged record."""
    with contextlib.suppress(BundleError):
        record = read_record(file.parent)
        return record if file.name in record.files else None
    return None


@dataclass(frozen=True)
class CheckedBundle:
    """A bundle whose files were compared with their hashes."""

    record: SessionRecord
    sha256: str
    """Of session.json, see `content_sha256`."""
    content: dict[str, bytes]
    """Of the files that were requested, as far as the bundle has them."""


def read_bundle(folder: Path) -> SessionRecord:
    """Read session.json and compare the size and hash of every file; raises BundleError with one sentence."""
    return check_bundle(folder).record


def check_bundle(folder: Path, with_content: Container[str] = ()) -> CheckedBundle:
    """Do what `read_bundle` does, reading each file once; return the content of those `with_content`, too."""
    text = _read_text(folder)
    record, content = parse_record(text, str(folder / RECORD)), {}
    for name, file in record.files.items():
        path, is_intact = folder / name, False
        try:
            with open_untrusted(path, MAX_FILE_BYTES) as stream:
                if os.fstat(stream.fileno()).st_size == file.bytes:
                    if name in with_content:
                        content[name] = stream.read(file.bytes)
                        sha256 = hashlib.sha256(content[name]).hexdigest()
                    else:
                        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
                    is_intact = sha256 == file.sha256
        except UntrustedFileError as error:
            cause = f"{path}: the file is missing from its bundle; restore the bundle from a backup"
            raise BundleError(cause if error.is_missing else str(error)) from None
        if not is_intact:
            cause = "the file does not match its hash in session.json; restore it from a backup"
            raise BundleError(f"{path}: {cause}")
    return CheckedBundle(record, hashlib.sha256(text).hexdigest(), content)


def content_sha256(path: Path) -> str:
    """Return the hash that identifies a bundle's folder or a loose ETDump; raises UntrustedFileError.

    That of a bundle is its session.json's, which contains the hashes of all other files.
    """
    if path.is_dir():
        return hash_untrusted(path / RECORD, MAX_RECORD_BYTES)
    return hash_untrusted(path, MAX_FILE_BYTES)


def list_sessions(folder: Path) -> list[str]:
    """Return the ids of the sessions that have a bundle in the folder of a sweep, damaged ones included, sorted.

    A thousand devices list some ten thousand bundles each: a path for each bundle would take twenty times as long.
    """
    try:
        with os.scandir(folder) as entries:
            # Folders whose names begin with a dot are still being written.
            return sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # writing reports the last one
        return []


def read_records(bundles: Path, sweep_id: str, *, skip_damaged: bool = False) -> Iterator[SessionRecord]:
    """Yield the record of every bundle of a sweep, in the order of their ids; see `read_folders`."""
    folder = bundles / sweep_id
    return read_folders([folder / session_id for session_id in list_sessions(folder)], skip_damaged=skip_damaged)


def read_folders(folders: Iterable[Path], *, skip_damaged: bool) -> Iterator[SessionRecord]:
    """Yield the record of each bundle that has one; raises BundleError where it is damaged, unless skipped."""
    for folder in folders:
        try:
            with contextlib.suppress(PermissionError):  # reading the record reports it
                if not (folder / RECORD).exists():
                    continue
            yield read_record(folder)
        except BundleError:
            if not skip_damaged:
                raise


def find_results(path: Path) -> Iterator[Path]:
    """Yield the folders of bundles below `path`, and the .etdump files outside any bundle; unfinished ones are skipped.

    `path` itself may be a bundle, its session.json or a file. A bundle that lost its session.json is yielded as well:
    its ETDump is not a loose one, since it is one session of a cell and may already be loaded from a copy.
    """
    if path.is_file():
        target = path.resolve() if path.is_symlink() else path  # a link that the user names, unlike one below a folder
        yield target.parent if target.name == RECORD else target
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith(UNFINISHED))
        if RECORD in files:
            names.clear()
            yield Path(folder)
        elif _looks_like_bundle(Path(folder).name, files):
            yield Path(folder)
        else:
            yield from (file for name in sorted(files) if (file := Path(folder, name)).suffix == ".etdump")


def _looks_like_bundle(name: str, files: list[str]) -> bool:
    """Return whether a folder without session.json seems to have been a bundle.

    Two of three signs decide: a name like a session's id, a file that the farm collects beside the ETDump, and an
    ETDump. A folder of ETDumps, or of the outputs of a runner under other names, shows only one.
    """
    signs = [_SESSION_ID.fullmatch(name), _COLLECTED.intersection(files), any(f.endswith(".etdump") for f in files)]
    return sum(map(bool, signs)) >= 2
