"""Bundles in a folder, and what every store of bundles returns for loading."""

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, SessionRecord, parse_record, parse_records
from tasks.store.files import publish_folder, sha256_of, write_complete
from tasks.store.find import bundles_of, find_results
from tasks.store.folder import Verified, bundle_sha256, publish_bundle, read_bundle
from tasks.store.forgotten import FOLDER, Forgotten, parse_forgotten
from tasks.store.packed import SUFFIX, archive_of, find_archives, packed_records, unpack, verify_archive
from tasks.store.shelf import FolderShelf

DECISIONS = "decisions"
"""Where a store keeps the records of tasks/analyse/verdict/decisions.py; like `forgotten`, not the name of a sweep."""
SHARED_FOLDER = ".shared"
"""Where a folder of bundles keeps what farms and labs share."""
Known = Callable[[Collection[str]], Collection[str]]
"""Returns which of some bundles, by the hash of their session.json, a warehouse contains."""


@dataclass(frozen=True)
class Found:
    """Bundles to load: folders that contain them, the number of those left out, and which could not be fetched."""

    folders: list[Path]
    already: int = 0
    """Not fetched, because the warehouse contains them."""
    refused: tuple[tuple[Path, str], ...] = ()
    """Name and reason of each."""


@dataclass(frozen=True)
class LocalStore:
    """Bundles in the folders `root/<sweep_id>/<session_id>`; those of old sweeps in `root/<sweep_id>.tar.zst`."""

    root: Path
    cache: Path | None = None
    """Where packed bundles are unpacked when they are needed; default: cache/bundles beside `root`."""

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.root)

    @property
    def shelf(self) -> FolderShelf:
        """The files that farms and labs with this folder share."""
        return FolderShelf(self.root / SHARED_FOLDER)

    def sweep_ids(self) -> list[str]:
        """Return the names of the folders in `root` and of the archives."""
        if not self.root.is_dir():
            return []
        names = {path.name for path in self.root.glob("[!.]*") if path.is_dir()} - {FOLDER, DECISIONS}
        return sorted(names | {path.name.removesuffix(SUFFIX) for path in find_archives(self.root)})

    def session_ids(self, sweep_id: str) -> list[str]:
        """Return the names of the bundles of a sweep, damaged ones included."""
        unpacked = {path.name for path in (self.root / sweep_id).glob("[!.]*") if path.is_dir()}
        return sorted(unpacked | {session_id for session_id, _ in packed_records(archive_of(self.root, sweep_id))})

    def records(
        self, sweep_id: str, *, device: str | None = None, skip_damaged: bool = False
    ) -> Iterator[SessionRecord]:
        """Yield the records of a sweep, or of one of its devices.

        Raises BundleError where one is damaged, unless such bundles are skipped.
        """
        archive = archive_of(self.root, sweep_id)
        packed = dict(packed_records(archive))
        all_unpacked = bundles_of(self.root, sweep_id, device=device, skip_damaged=skip_damaged)
        unpacked = (record for record in all_unpacked if record.session_id not in packed)
        texts = ((f"{archive}: {session_id}", text) for session_id, text in sorted(packed.items()))
        of_archive = parse_records(texts, device=device, skip_damaged=skip_damaged)
        yield from merge(unpacked, of_archive, key=lambda record: record.session_id)

    def publish(self, record: SessionRecord, collected: Path) -> SessionRecord:
        """Write the bundle beside its place and rename it; raises BundleError if the disk is full or read-only."""
        archive = archive_of(self.root, record.sweep.sweep_id)
        for session_id, text in packed_records(archive):
            if session_id == record.session_id:
                return parse_record(text, f"{archive}: {session_id}")
        return publish_bundle(self.root, record, collected)

    def find(self, session_id: str) -> Path | None:
        """Return the folder of a session; a packed one is unpacked into the cache first."""
        folders = (self.root / sweep_id / session_id for sweep_id in self.sweep_ids())
        if found := next((folder for folder in folders if session_id and (folder / RECORD).is_file()), None):
            return found
        for archive in find_archives(self.root):
            for packed_id, text in packed_records(archive):
                if packed_id == session_id:
                    return self._unpacked(archive, session_id, hashlib.sha256(text).hexdigest())
        return None

    def local_folders(self, sweep_id: str | None, known: Known) -> Found:
        """Return the folder and the archive of the sweep, or the folder of all; the loader finds the bundles in it."""
        if sweep_id is None:
            return Found([self.root])
        archive = archive_of(self.root, sweep_id)
        places = [place for place in (self.root / sweep_id, archive) if place.exists()]
        return Found(places or [self.root / sweep_id])

    def verify(self, sweep_id: str) -> Iterator[Verified]:
        """Read every file of a sweep's bundles and compare it with its hash."""
        if (archive := archive_of(self.root, sweep_id)).is_file():
            yield from verify_archive(archive, sweep_id)
        for path in find_results(self.root / sweep_id):
            sha256 = None
            try:
                sha256 = bundle_sha256(path) if path.is_dir() else sha256_of(path)
                count = len(read_bundle(path).files) if path.is_dir() else 1
                yield Verified(path.name if path.is_dir() else sha256[:16], sweep_id, sha256, files=count)
            except BundleError as error:
                yield Verified(path.name, sweep_id, sha256, str(error))
            except OSError as error:
                cause = f"cannot be read ({error.strerror}); restore the bundle from a backup"
                yield Verified(path.name, sweep_id, sha256, f"{path}: {cause}")

    def _unpacked(self, archive: Path, session_id: str, sha256: str) -> Path:
        cache = self.cache or self.root.parent / "cache" / "bundles"
        final = cache / archive.name.removesuffix(SUFFIX) / f"{session_id}-{sha256[:16]}"
        if not final.is_dir():
            with publish_folder(final) as aside:
                [bundle] = unpack(archive, {session_id}, aside)
                for path in bundle.iterdir():
                    path.rename(aside / path.name)
                bundle.rmdir()
        return final

    def forget(self, record: Forgotten) -> None:
        """Record forgotten sessions durably; raises BundleError if the disk is full or read-only."""
        path = self.root / FOLDER / record.file_name
        try:
            write_complete(path, record.text())
        except OSError as error:
            raise BundleError(f"{path}: cannot be written ({error.strerror}); nothing was forgotten") from None

    def forgotten(self) -> dict[str, str]:
        """Return the reason of each forgotten session, by its id; raises BundleError if a record is damaged."""
        reasons: dict[str, str] = {}
        for path in sorted((self.root / FOLDER).glob("[!.]*.json")):
            record = parse_forgotten(path.read_bytes(), str(path))
            reasons |= dict.fromkeys(record.sessions, record.reason)
        return reasons

    def record_decision(self, name: str, content: bytes) -> None:
        """Write the file of a decision durably; raises BundleError if the disk is full or read-only."""
        path = self.root / DECISIONS / name
        try:
            write_complete(path, content)
        except OSError as error:
            raise BundleError(f"{path}: cannot be written ({error.strerror}); nothing was recorded") from None

    def decisions(self) -> dict[str, bytes | Exception]:
        """Return the content of each decision's file by its path, or the error of reading it."""
        return {str(path): _content(path) for path in sorted((self.root / DECISIONS).glob("[!.]*.json"))}


def _content(path: Path) -> bytes | Exception:
    try:
        return path.read_bytes()
    except OSError as error:
        return error
