"""Exports that several machines share: one archive for each content key, kept beside the bundles in object storage."""

import logging
import tarfile
from pathlib import Path
from typing import Protocol

from backports import zstd

from devices.errors import FarmError
from tasks.export.exported import read_complete
from tasks.files import work_folder

_log = logging.getLogger(__name__)


class ExportStore(Protocol):
    """Keeps archives by content key; both methods raise FarmError if the storage does not answer."""

    def fetch_export(self, key: str, target: Path) -> bool:
        """Write the archive of an export to `target`; return False if there is none."""
        ...

    def publish_export(self, key: str, archive: Path) -> None:
        """Keep the archive of an export, completely or not at all."""
        ...


def fetch(store: ExportStore, key: str, exports_dir: Path) -> bool:
    """Put the export of this key into the exports folder; return False if the store has no complete one.

    A damaged archive, and a storage that does not answer, are logged: the export is then made here.
    """
    with work_folder(exports_dir) as aside:
        archive, unpacked = aside / "archive", aside / key
        try:
            if not store.fetch_export(key, archive):
                return False
            unpacked.mkdir()
            _unpack(archive, unpacked)
        except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
            _log.warning("the export %s in object storage is damaged and will be made again: %s", key, error)
            return False
        except FarmError as error:
            _log.warning("the export %s cannot be fetched and will be made here: %s", key, error)
            return False
        found = read_complete(unpacked)
        if found is None or found[0].export_key != key:
            return False
        if not (exports_dir / key).is_dir():
            unpacked.rename(exports_dir / key)
        _log.info("fetched the export %s of %s %s", key, found[0].model, found[0].precision)
    return True


def publish(store: ExportStore, folder: Path) -> None:
    """Upload an export that was made here; if that fails, it is logged and the next machine makes it itself."""
    with work_folder(folder.parent) as aside:
        archive = aside / "archive"
        options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
        with zstd.open(archive, "wb", options=options) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
            for path in sorted(folder.iterdir()):
                tar.add(path, path.name, recursive=False)
        try:
            store.publish_export(folder.name, archive)
        except FarmError as error:
            _log.warning("the export %s could not be uploaded: %s", folder.name, error)


def _unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive; raises an error of tarfile or zstd where it is damaged or has other entries."""
    with zstd.open(archive, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        tar.extractall(folder, filter="data")
        while stream.read(1 << 20):  # to the end, where a truncated archive shows
            pass
