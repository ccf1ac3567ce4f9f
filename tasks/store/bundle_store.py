"""The interface of all stores of bundles, and the decisions of users that they keep beside the bundles.

Each `etfarm decisions forget` writes one small file to the folder `forgotten`. It lists sessions that are left out of
all figures, also of a rebuilt warehouse. Bundles never change. A forgotten session counts as not done: the next start
of its sweep measures it as the next attempt, which has another session id.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from devices.untrusted import read_json
from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, SessionRecord, parse_record
from tasks.store.blob_store import BlobStore
from tasks.store.folder import BundleCheck

DECISIONS = "decisions"
"""Where a store keeps decisions about nights (tasks/judge/decisions.py), a file each."""
SKIPPED = "skipped"
"""Where it keeps what sweeps did not export although nothing failed (tasks/store/skipped.py)."""
_FORGOTTEN = "forgotten"
NOT_SWEEPS = frozenset({_FORGOTTEN, DECISIONS, SKIPPED})
"""Folders beside those of sweeps. No sweep has such a name, because a sweep id ends with the night."""
LoadedSessions = Callable[[Collection[str]], Collection[str]]
"""Takes hashes of session.json files; returns those of bundles that a warehouse contains."""


class Forgotten(BaseModel, extra="forbid", frozen=True):
    """The sessions that one command forgot, and why."""

    version: Literal[1] = 1
    reason: str
    forgotten_at: str
    """ISO 8601, UTC."""
    sessions: dict[str, str]
    """The sweep of each session, by session id."""

    def text(self) -> bytes:
        return (self.model_dump_json(indent=1) + "\n").encode()


@dataclass(frozen=True)
class FetchedBundles:
    """Where bundles to load are on this machine, and those that were not fetched."""

    folders: list[Path]
    """Folders of bundles, folders that contain some, and archives."""
    already: int = 0
    """Not fetched, because the warehouse contains them."""
    refused: tuple[tuple[Path, str], ...] = ()
    """Path in the store and reason of each bundle that could not be fetched."""


class BundleStore(ABC):
    """Bundles by sweep and session; every method raises BundleError if the store does not answer.

    A bundle is published completely or not at all, and never replaced.
    """

    def __init__(self, location: str, shared_files: BlobStore) -> None:
        self.location = location
        """The folder or URL."""
        self.shared_files = shared_files
        """The files that farms and labs with this store share."""
        self._files = BlobStore(location)
        self._devices: dict[str, str] = {}
        """The device of each session that was read for one: otherwise each of a hundred devices reads all records."""

    @property
    def folders_with_unfinished(self) -> list[Path]:
        """The local folders in which this machine may have left unfinished files; none of object storage."""
        return []

    @abstractmethod
    def sweep_ids(self) -> list[str]:
        """Return the ids of all sweeps with bundles."""

    @abstractmethod
    def session_ids(self, sweep_id: str) -> list[str]:
        """Return the ids of the sessions of a sweep that have a bundle, damaged ones included."""

    @abstractmethod
    def records(
        self, sweep_id: str, *, device: str | None = None, skip_damaged: bool = False
    ) -> Iterator[SessionRecord]:
        """Yield the record of every bundle of a sweep, or of one of its devices, in the order of their ids.

        Raises BundleError where one is damaged, unless such bundles are skipped.
        """

    def _may_be_of(self, device: str | None, session_ids: Iterable[str]) -> list[str]:
        """Return the sessions but those of which a record was read that is of another device (None: all)."""
        return [each for each in session_ids if device is None or self._devices.get(each, device) == device]

    def _limited_to(self, device: str | None, records: Iterable[SessionRecord]) -> Iterator[SessionRecord]:
        """Yield the records of the device (None: all)."""
        for record in records:
            if device is not None:
                self._devices[record.session_id] = record.device.name
            if device in (None, record.device.name):
                yield record

    def record(self, sweep_id: str, session_id: str) -> SessionRecord:
        """Return the record of a bundle that is not packed; raises BundleError if it is missing or damaged."""
        name = f"{sweep_id}/{session_id}/{RECORD}"
        return parse_record(self._files.read(name) or b"", f"{self.location}/{name}")

    @abstractmethod
    def publish(self, record: SessionRecord, collected: Path) -> SessionRecord:
        """Store the bundle of `record` with the files of `collected`.

        Return the stored record: that of an earlier bundle of the session, if there is one.
        """

    @abstractmethod
    def find(self, session_id: str) -> Path | None:
        """Return a local folder with the bundle of a session, or None if the store does not contain it."""

    @abstractmethod
    def local_folders(self, sweep_id: str | None, loaded: LoadedSessions) -> FetchedBundles:
        """Return local paths to load the bundles of a sweep, or of all, from.

        Bundles in object storage are fetched first, except those that `loaded` returns.
        """

    @abstractmethod
    def verify(self, sweep_id: str) -> Iterator[BundleCheck]:
        """Read every file of a sweep's bundles and compare it with its hash."""

    def forget(self, record: Forgotten) -> None:
        """Record sessions to leave out of all figures from now on; an equal record is stored once."""
        content = record.text()
        self._files.write(f"{_FORGOTTEN}/{hashlib.sha256(content).hexdigest()[:16]}.json", content)

    def forgotten(self) -> dict[str, str]:
        """Return the reason of each forgotten session, by its id; raises BundleError if a record is damaged."""
        reasons: dict[str, str] = {}
        for path, content in self._files.contents(_FORGOTTEN).items():
            if isinstance(content, BundleError):
                raise content
            if isinstance(content, Exception):
                cause = getattr(content, "strerror", None) or type(content).__name__
                raise BundleError(f"{path}: cannot be read ({cause}); restore the file from a backup") from content
            try:
                record = read_json(Forgotten, content)
            except ValidationError as error:
                cause = f"not a record of forgotten sessions ({error.errors()[0]['msg']})"
                raise BundleError(f"{path}: {cause}; restore the file from a backup") from None
            reasons |= dict.fromkeys(record.sessions, record.reason)
        return reasons

    def record_decision(self, name: str, content: bytes) -> None:
        self._files.write(f"{DECISIONS}/{name}", content)

    def decisions(self) -> dict[str, bytes | Exception]:
        """Return the content of each decision's file by its path, or the error of reading it."""
        return self._files.contents(DECISIONS)

    def record_skipped(self, name: str, content: bytes) -> None:
        self._files.write(f"{SKIPPED}/{name}", content)

    def skipped_files(self) -> list[str]:
        """Return the names of the files with what sweeps skipped."""
        return self._files.names(SKIPPED)

    def read_skipped(self, name: str) -> bytes:
        return self._files.read(f"{SKIPPED}/{name}") or b""
