"""Exports that several machines share: one archive for each content key, beside the bundles."""

import logging
from pathlib import Path

from devices.errors import FarmError
from tasks.export.exported import Export, ExportError, read_complete
from tasks.store.archives import SUFFIX, ArchiveError, pack, unpack
from tasks.store.blob_store import BlobStore
from tasks.store.files import work_folder

_log = logging.getLogger(__name__)


def fetch(shelf: BlobStore, key: str, exports_dir: Path) -> bool:
    """Put the export of this key into the exports folder; return False if it must be made here.

    A damaged archive, and a storage that does not answer, are logged.
    """
    try:
        if not is_shared(shelf, key):
            return False
        fetch_export(shelf, key, exports_dir)
    except FarmError as error:
        _log.warning("%s; it will be made here", error)
        return False
    return True


def fetch_export(shelf: BlobStore, key: str, exports_dir: Path) -> tuple[Export, ...]:
    """Return the cases of the export of this key, which was made elsewhere.

    Raises ExportError if there is none or it is damaged, BundleError if the storage does not answer.
    """
    if found := read_complete(exports_dir / key):
        return found
    with work_folder(exports_dir) as aside:
        archive, unpacked = aside / "archive", aside / key
        if not shelf.get(_name(key), archive):
            raise ExportError(f"the export {key} is not shared")
        unpacked.mkdir()
        try:
            unpack(archive, unpacked)
        except ArchiveError as error:
            raise ExportError(f"the shared export {key} cannot be used: {error.cause}") from None
        found = read_complete(unpacked)
        if found is None or found[0].export_key != key:
            raise ExportError(f"the shared export {key} is incomplete or another one")
        if not (exports_dir / key).is_dir():
            unpacked.rename(exports_dir / key)
    _log.info("fetched the export %s of %s %s", key, found[0].model, found[0].precision)
    return read_complete(exports_dir / key) or found


def publish(shelf: BlobStore, folder: Path) -> None:
    """Share an export that was made here; if that fails, it is logged and the next machine makes it itself."""
    try:
        _put(shelf, folder)
    except FarmError as error:
        _log.warning("the export %s could not be uploaded: %s", folder.name, error)


def is_shared(shelf: BlobStore, key: str) -> bool:
    """Return whether a machine shares the export of this key; raises BundleError if the storage does not answer."""
    return shelf.has(_name(key))


def share_export(shelf: BlobStore, folder: Path) -> str:
    """Share an export unless it is; return its key. Raises BundleError if the storage does not answer."""
    if not is_shared(shelf, folder.name):
        _put(shelf, folder)
    return folder.name


def _put(shelf: BlobStore, folder: Path) -> None:
    with work_folder(folder.parent) as aside:
        pack(folder, aside / "archive")
        shelf.put(_name(folder.name), aside / "archive")


def _name(key: str) -> str:
    return f"exports/{key}{SUFFIX}"
