"""Where bundles are kept: a local folder, or object storage (S3 and everything else that fsspec reaches).

Both publish a bundle completely or not at all, and never replace one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from tasks.bundle.record import SessionRecord
from tasks.store.folder import Verified
from tasks.store.forgotten import Forgotten
from tasks.store.local import Found, Known, LocalStore
from tasks.store.remote import ObjectStore
from tasks.store.shelf import Shelf
from tasks.store.var import Var

__all__ = ["BundleStore", "LocalStore", "ObjectStore", "open_store"]


@runtime_checkable
class BundleStore(Protocol):
    """Bundles by sweep and session; every method raises BundleError if the store does not answer."""

    @property
    def location(self) -> str:
        """The folder or URL, for messages."""
        ...

    @property
    def shelf(self) -> Shelf:
        """The files that farms and labs with this store share."""
        ...

    def sweep_ids(self) -> list[str]:
        """Return the ids of all sweeps with bundles."""
        ...

    def session_ids(self, sweep_id: str) -> list[str]:
        """Return the ids of the sessions of a sweep that have a bundle, damaged ones included."""
        ...

    def records(
        self, sweep_id: str, *, device: str | None = None, skip_damaged: bool = False
    ) -> Iterator[SessionRecord]:
        """Yield the record of every bundle of a sweep, or of one of its devices, in the order of their ids."""
        ...

    def publish(self, record: SessionRecord, collected: Path) -> SessionRecord:
        """Keep the bundle of `record` with the files of `collected`; return the record as it is in the store."""
        ...

    def find(self, session_id: str) -> Path | None:
        """Return a local folder with the bundle of a session, or None if the store does not contain it."""
        ...

    def local_folders(self, sweep_id: str | None, known: Known) -> Found:
        """Return the bundles of a sweep, or of all, as local folders for loading."""
        ...

    def verify(self, sweep_id: str) -> Iterator[Verified]:
        """Read every file of a sweep's bundles and compare it with its hash."""
        ...

    def forget(self, record: Forgotten) -> None:
        """Record sessions that are left out of all figures from now on."""
        ...

    def forgotten(self) -> dict[str, str]:
        """Return the reason of each forgotten session, by its id."""
        ...

    def record_decision(self, name: str, content: bytes) -> None:
        """Write the file of a decision about nights (tasks/analyse/verdict/decisions.py)."""
        ...

    def decisions(self) -> dict[str, bytes | Exception]:
        """Return the content of each decision's file by its path, or the error of reading it."""
        ...


def open_store(bundles: str | None, var: Var) -> BundleStore:
    """Return the store at a folder or URL; without one, the folder of the var folder.

    Raises InputError if the URL is not supported or contains credentials.
    """
    if bundles is None or "://" not in bundles:
        return LocalStore(Path(bundles).absolute() if bundles else var.bundles, var.bundle_cache)
    return ObjectStore(bundles, var.bundle_cache)
