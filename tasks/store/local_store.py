"""Bundles in a local folder, those of old sweeps in archives."""

import hashlib
from collections.abc import Iterator
from heapq import merge
from pathlib import Path

from devices.untrusted import UntrustedFileError
from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, SessionRecord, parse_record, parse_records
from tasks.store.archives import SUFFIX, archive_path, find_archives, packed_records, unpack_bundles, verify_archive
from tasks.store.blob_store import BlobStore
from tasks.store.bundle_store import NOT_SWEEPS, BundleStore, FetchedBundles, LoadedSessions
from tasks.store.files import publish_folder, work_folder
from tasks.store.folder import (
    BundleCheck,
    content_sha256,
    find_results,
    list_sessions,
    publish_bundle,
    read_bundle,
    read_folders,
)

_SHARED = ".shared"
"""Where a folder of bundles keeps what farms and labs share."""


class LocalStore(BundleStore):
    """Bundles in the folders `root/<sweep_id>/<session_id>`; those of old sweeps in `root/<sweep_id>.tar.zst`.

    A packed bundle that is needed is unpacked to the folder `cache`; default: cache/bundles beside `root`.
    """

    def __init__(self, root: Path, cache: Path | None = None) -> None:
        super().__init__(str(root), BlobStore(str(root / _SHARED)))
        self.root = root
        self._cache = cache or root.parent / "cache" / "bundles"

    @property
    def folders_with_unfinished(self) -> list[Path]:
        return [self.root, Path(self.shared_files.location)]

    def sweep_ids(self) -> list[str]:
        if not self.root.is_dir():
            return []
        names = {path.name for path in self.root.glob("[!.]*") if path.is_dir()} - NOT_SWEEPS
        return sorted(names | {path.name.removesuffix(SUFFIX) for path in find_archives(self.root)})

    def session_ids(self, sweep_id: str) -> list[str]:
        packed = {session_id for session_id, _ in packed_records(archive_path(self.root, sweep_id))}
        return sorted(packed.union(list_sessions(self.root / sweep_id)))

    def records(
        self, sweep_id: str, *, device: str | None = None, skip_damaged: bool = False
    ) -> Iterator[SessionRecord]:
        archive = archive_path(self.root, sweep_id)
        packed = dict(packed_records(archive))
        unpacked_ids = self._may_be_of(device, list_sessions(self.root / sweep_id))
        folders = [self.root / sweep_id / each for each in unpacked_ids if each not in packed]
        unpacked = read_folders(folders, skip_damaged=skip_damaged)
        texts = ((f"{archive}: {each}", packed[each]) for each in self._may_be_of(device, sorted(packed)))
        of_archive = parse_records(texts, skip_damaged=skip_damaged)
        yield from self._limited_to(device, merge(unpacked, of_archive, key=lambda record: record.session_id))

    def publish(self, record: SessionRecord, collected: Path) -> SessionRecord:
        archive = archive_path(self.root, record.sweep.sweep_id)
        for session_id, text in packed_records(archive):
            if session_id == record.session_id:
                return parse_record(text, f"{archive}: {session_id}")
        return publish_bundle(self.root, record, collected)

    def find(self, session_id: str) -> Path | None:
        folders = (self.root / sweep_id / session_id for sweep_id in self.sweep_ids())
        if unpacked := next((folder for folder in folders if session_id and (folder / RECORD).is_file()), None):
            return unpacked
        for archive in find_archives(self.root):
            for packed_id, text in packed_records(archive):
                if packed_id == session_id:
                    return self._unpack_to_cache(archive, session_id, text)
        return None

    def _unpack_to_cache(self, archive: Path, session_id: str, text: bytes) -> Path:
        """Return the folder in the cache with a bundle of an archive; `text` is its session.json."""
        content = hashlib.sha256(text).hexdigest()[:16]
        final = self._cache / archive.name.removesuffix(SUFFIX) / f"{session_id}-{content}"
        if not final.is_dir():
            with work_folder(final.parent) as folder, publish_folder(final) as aside:
                unpack_bundles(archive, folder, {session_id: text})
                for path in folder.glob("*/*/*"):
                    path.rename(aside / path.name)
        return final

    def local_folders(self, sweep_id: str | None, loaded: LoadedSessions) -> FetchedBundles:
        """Return the folder of all sweeps, or the folder and the archive of one as far as they exist.

        For a sweep with neither, its folder is returned, so that the load reports it.
        """
        if sweep_id is None:
            return FetchedBundles([self.root])
        archive = archive_path(self.root, sweep_id)
        present = [path for path in (self.root / sweep_id, archive) if path.exists()]
        return FetchedBundles(present or [self.root / sweep_id])

    def verify(self, sweep_id: str) -> Iterator[BundleCheck]:
        if (archive := archive_path(self.root, sweep_id)).is_file():
            yield from verify_archive(archive, sweep_id)
        for path in find_results(self.root / sweep_id):
            sha256 = None
            try:
                sha256 = content_sha256(path)
                count = len(read_bundle(path).files) if path.is_dir() else 1
                yield BundleCheck(path.name if path.is_dir() else sha256[:16], sweep_id, sha256, files=count)
            except (BundleError, UntrustedFileError) as error:
                yield BundleCheck(path.name, sweep_id, sha256, str(error))
            except OSError as error:
                cause = f"cannot be read ({error.strerror}); restore the bundle from a backup"
                yield BundleCheck(path.name, sweep_id, sha256, f"{path}: {cause}")
