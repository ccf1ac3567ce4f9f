"""Bundles in object storage: S3, and others that fsspec supports.

A bundle is `<location>/<sweep_id>/<session_id>/session.json`, and beside it its files as `<start of the hash>-<name>`.
session.json is written last and only if it does not exist yet: it makes the bundle complete. Writers of one session
with different content therefore never mix, and the first one wins. Credentials come from the environment or the
provider's configuration, never from the location.
"""

import contextlib
import hashlib
import logging
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from fsspec.callbacks import Callback

from tasks.bundle.names import MAX_FILE_BYTES, MAX_RECORD_BYTES, RECORD
from tasks.bundle.record import BundleError, FileRecord, SessionRecord, Text, parse_record, parse_records, record_text
from tasks.store.blob_store import SHARED, BlobStore, file_system, read_files, storage_errors, validate_location
from tasks.store.bundle_store import NOT_SWEEPS, BundleStore, FetchedBundles, LoadedSessions
from tasks.store.files import hash_file, publish_folder, wait_if_ending
from tasks.store.folder import BundleCheck, read_bundle

_log = logging.getLogger(__name__)
_HASH_DIGITS = 16
_RECORD_PATH = re.compile(rf"/[^/]+/{re.escape(RECORD)}")


class SizeLimit(Callback):  # type: ignore[misc]
    """Raises BundleError when a file in transfer exceeds its recorded size, before it fills the disk."""

    def __init__(self, sizes: Mapping[str, int], key: str | None = None) -> None:
        super().__init__()
        self._sizes, self._key = sizes, key

    def branched(self, path_1: str, path_2: str, **_more: Any) -> "SizeLimit":
        return SizeLimit(self._sizes, path_1)

    def set_size(self, size: int | None) -> None:
        self._check(size or 0)

    def relative_update(self, inc: int = 1) -> None:
        self.value += inc
        self._check(self.value)

    def _check(self, size_bytes: int) -> None:
        if self._key is not None and size_bytes > self._sizes[self._key]:
            cause = f"has {size_bytes} bytes or more; its session.json states {self._sizes[self._key]}"
            raise BundleError(f"{self._key}: {cause}; restore it from a backup")


class ObjectStore(BundleStore):
    """Bundles below a URL; `cache` is a local folder for those that were fetched."""

    def __init__(self, location: str, cache: Path) -> None:
        super().__init__(validate_location(location), BlobStore(location))
        self._fs, self._root = file_system(location)
        self._cache = cache

    def sweep_ids(self) -> list[str]:
        with storage_errors(self.location, "bundles cannot be listed"):
            try:
                entries = self._fs.ls(self._root, detail=False)
            except FileNotFoundError:
                bucket = self._root.lstrip("/").partition("/")[0]
                if not self._fs.exists(bucket):
                    raise BundleError(f"{self.location}: there is no bucket `{bucket}`; create it") from None
                return []
        return sorted({posixpath.basename(entry.rstrip("/")) for entry in entries} - NOT_SWEEPS - SHARED)

    def session_ids(self, sweep_id: str) -> list[str]:
        with storage_errors(self.location, f"the bundles of {sweep_id} cannot be listed"):
            return sorted(posixpath.basename(posixpath.dirname(path)) for path in self._record_paths(sweep_id))

    def records(
        self, sweep_id: str, *, device: str | None = None, skip_damaged: bool = False
    ) -> Iterator[SessionRecord]:
        texts = self._read_record_texts(sweep_id, device)
        yield from self._limited_to(device, parse_records(texts.items(), skip_damaged=skip_damaged))

    def publish(self, record: SessionRecord, collected: Path) -> SessionRecord:
        wait_if_ending()
        folder = f"{self._root}/{record.sweep.sweep_id}/{record.session_id}"
        sources = sorted(path for path in collected.iterdir() if path.is_file())
        files = {path.name: FileRecord(sha256=hash_file(path), bytes=path.stat().st_size) for path in sources}
        complete = record.model_copy(update={"files": files})
        with storage_errors(self.location, f"bundle {record.session_id} cannot be written"):
            if sources:
                self._fs.put([str(path) for path in sources], list(_file_sizes(folder, complete)))
            # Another writer of the session may be first; the session then has its result.
            with contextlib.suppress(FileExistsError):
                self._fs.pipe_file(f"{folder}/{RECORD}", record_text(complete), mode="create")
            content = self._fs.cat_file(f"{folder}/{RECORD}", start=0, end=MAX_RECORD_BYTES)
            stored = parse_record(content, f"{folder}/{RECORD}")
            # What other writers of this session uploaded can no longer become complete.
            current = {*_file_sizes(folder, stored), f"{folder}/{RECORD}"}
            if leftovers := [path for path in self._fs.find(folder) if path not in current]:
                self._fs.rm(leftovers)
        return stored

    def find(self, session_id: str) -> Path | None:
        candidates = [f"{self._root}/{sweep_id}/{session_id}/{RECORD}" for sweep_id in self.sweep_ids()]
        if not session_id or not candidates:
            return None
        with storage_errors(self.location, f"session {session_id} cannot be read"):
            texts = self._read_texts(dict.fromkeys(candidates, MAX_RECORD_BYTES), MAX_RECORD_BYTES)
        return next((self._fetch(path, text) for path, text in texts.items()), None)

    def local_folders(self, sweep_id: str | None, loaded: LoadedSessions) -> FetchedBundles:
        texts: dict[str, Text] = {}
        for each in [sweep_id] if sweep_id else self.sweep_ids():
            texts |= self._read_record_texts(each)
        hashes = {path: hashlib.sha256(text).hexdigest() for path, text in texts.items() if isinstance(text, bytes)}
        loaded_hashes = set(loaded(list(hashes.values())))
        folders, refused = [], []
        for path, content in texts.items():
            if hashes.get(path) in loaded_hashes:
                continue
            try:
                folders.append(self._fetch(path, content))
            except BundleError as error:
                refused.append((Path(path), str(error)))
        _log.info("%s: %d bundles fetched, %d already loaded", self.location, len(folders), len(loaded_hashes))
        return FetchedBundles(folders, len(texts) - len(folders) - len(refused), tuple(refused))

    def verify(self, sweep_id: str) -> Iterator[BundleCheck]:
        for path, content in self._read_record_texts(sweep_id).items():
            folder = posixpath.dirname(path)
            sha256 = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else None
            session_id, damage = posixpath.basename(folder), None
            try:
                record = parse_record(content, path)
                # If a file is longer than its recorded size, one byte more is read, which changes the hash.
                sizes = {key: size and size + 1 for key, size in _file_sizes(folder, record).items()}
                with storage_errors(self.location, f"bundle {session_id} cannot be read"):
                    texts = self._read_texts(sizes, MAX_FILE_BYTES + 1).values()
                present = {hashlib.sha256(text).hexdigest() for text in texts if isinstance(text, bytes)}
                if wrong := sorted(name for name, file in record.files.items() if file.sha256 not in present):
                    cause = "missing, or not matching its hash in session.json; restore it from a backup"
                    damage = f"{folder}: {', '.join(wrong)}: {cause}"
            except BundleError as error:
                damage = str(error)
            yield BundleCheck(session_id, sweep_id, sha256, damage, 0 if damage else len(record.files))

    def _record_paths(self, sweep_id: str) -> dict[str, int]:
        """Return the path of each session.json of a sweep, in the order of the session ids, with its size in bytes."""
        folder = f"{self._root}/{sweep_id}"
        sizes = {path: int(entry["size"]) for path, entry in sorted(self._fs.find(folder, detail=True).items())}
        return {path: size for path, size in sizes.items() if _RECORD_PATH.fullmatch(path.removeprefix(folder))}

    def _read_record_texts(self, sweep_id: str, device: str | None = None) -> dict[str, Text]:
        """Return the content of each session.json of a sweep, by path, in the order of the session ids.

        With a device, those that are known to be of another one are left out.
        """
        with storage_errors(self.location, f"the bundles of {sweep_id} cannot be read"):
            sizes = self._record_paths(sweep_id)
            paths = {posixpath.basename(posixpath.dirname(path)): path for path in sizes}
            read = [paths[session_id] for session_id in self._may_be_of(device, paths)]
            return self._read_texts({path: sizes[path] for path in read}, MAX_RECORD_BYTES)

    def _read_texts(self, sizes: dict[str, int], max_bytes: int) -> dict[str, Text]:
        """Return the content of each file that exists, or the BundleError of one that is not read.

        Raises the errors of the storage.
        """
        texts: dict[str, Text] = {}
        for path, content in read_files(self._fs, sizes, max_bytes).items():
            if isinstance(content, bytes | BundleError):
                texts[path] = content
            elif not isinstance(content, FileNotFoundError):
                raise content
        return texts

    def _fetch(self, path: str, content: Text) -> Path:
        """Return a local folder with the bundle whose session.json is `content`; the same content is fetched once."""
        record = parse_record(content, path)
        content = cast(bytes, content)  # it was parsed
        name = f"{record.session_id}-{hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]}"
        final = self._cache / record.sweep.sweep_id / name
        if not final.is_dir():
            with (
                storage_errors(self.location, f"bundle {record.session_id} cannot be fetched"),
                publish_folder(final) as aside,
            ):
                sizes = _file_sizes(posixpath.dirname(path), record)
                if sizes:
                    targets = [str(aside / name) for name in sorted(record.files)]
                    self._fs.get(list(sizes), targets, callback=SizeLimit(sizes))
                (aside / RECORD).write_bytes(content)
                try:
                    read_bundle(aside)
                except BundleError as error:
                    cause = str(error).removeprefix(f"{aside}/")
                    folder = posixpath.dirname(path)
                    raise BundleError(f"{folder}: the fetched bundle is damaged: {cause}") from None
        return final


def _file_sizes(folder: str, record: SessionRecord) -> dict[str, int]:
    """Return the recorded size in bytes of each file of a bundle, by its path, in the order of the files' names."""
    files = sorted(record.files.items())
    return {f"{folder}/{file.sha256[:_HASH_DIGITS]}-{name}": file.bytes for name, file in files}
