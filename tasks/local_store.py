"""Bundles in a folder, and what every store of bundles returns for loading."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.bundle import (
    RECORD,
    BundleError,
    SessionRecord,
    bundle_sha256,
    bundles_of,
    find_results,
    publish_bundle,
    read_bundle,
)
from tasks.files import sha256_of, write_complete
from tasks.forgotten import FOLDER, Forgotten, parse_forgotten

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
class Verified:
    """A bundle whose files were read and compared with their hashes."""

    session_id: str
    sweep_id: str
    sha256: str | None
    """Of session.json, or of an ETDump outside any bundle; None if it cannot be read."""
    damage: str | None = None
    """What is wrong with it, in one sentence."""
    files: int = 0


@dataclass(frozen=True)
class LocalStore:
    """Bundles in the folders `root/<sweep_id>/<session_id>`."""

    root: Path

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.root)

    def sweep_ids(self) -> list[str]:
        """Return the names of the folders in `root`."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if path.is_dir() and path.name != FOLDER)

    def session_ids(self, sweep_id: str) -> list[str]:
        """Return the names of the bundles of a sweep, damaged ones included."""
        return sorted(path.parent.name for path in (self.root / sweep_id).glob(f"[!.]*/{RECORD}"))

    def records(self, sweep_id: str) -> Iterator[SessionRecord]:
        """Yield the records of a sweep; raises BundleError on a damaged one."""
        return bundles_of(self.root, sweep_id)

    def publish(self, record: SessionRecord, collected: Path) -> SessionRecord:
        """Write the bundle beside its place and rename it; raises BundleError if the disk is full or read-only."""
        return publish_bundle(self.root, record, collected)

    def find(self, session_id: str) -> Path | None:
        """Return the folder of a session."""
        folders = (self.root / sweep_id / session_id for sweep_id in self.sweep_ids())
        return next((folder for folder in folders if session_id and (folder / RECORD).is_file()), None)

    def local_folders(self, sweep_id: str | None, known: Known) -> Found:
        """Return the folder of the sweep, or of all sweeps; the loader finds the bundles in it."""
        return Found([self.root / sweep_id if sweep_id else self.root])

    def verify(self, sweep_id: str) -> Iterator[Verified]:
        """Read every file of a sweep's bundles and compare it with its hash."""
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
