"""Where the farm keeps its files: the data folder, and the warehouse and the bundles if they are elsewhere."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.store.bundle_store import BundleStore


@dataclass(frozen=True)
class Workspace:
    """The data folder (the setting `data_dir`) and what is in it."""

    root: Path
    warehouse_file: Path | None = None
    """A DuckDB file instead of the one in the data folder."""
    bundles_location: str | None = None
    """The folder or URL, such as s3://bucket/prefix, of all bundles instead of that in the data folder."""

    @cached_property
    def store(self) -> "BundleStore":
        """All bundles, the source of truth; InputError for a URL that is unsupported or has credentials."""
        from tasks.store.local_store import LocalStore

        if self.bundles_location is None:
            return LocalStore(self.bundles, self.bundle_cache)
        if "://" not in self.bundles_location:
            return LocalStore(Path(self.bundles_location).absolute(), self.bundle_cache)
        from tasks.store.object_store import ObjectStore  # imports fsspec, which is slow

        return ObjectStore(self.bundles_location, self.bundle_cache)

    @property
    def warehouse(self) -> Path:
        """The DuckDB file that the loader writes."""
        return self.warehouse_file or self._own_warehouse

    @property
    def has_snapshots(self) -> bool:
        """Whether snapshots of the warehouse are published: only of the one in the data folder."""
        return self.warehouse_file is None or self.warehouse_file.resolve() == self._own_warehouse.resolve()

    @property
    def _own_warehouse(self) -> Path:
        return self.root / "warehouse" / "warehouse.duckdb"

    @property
    def snapshots(self) -> Path:
        """Published copies of the warehouse, which readers open."""
        return self.root / "warehouse" / "snapshots"

    @property
    def exports(self) -> Path:
        """Exported models, one folder per content key."""
        return self.root / "exports"

    @property
    def runners(self) -> Path:
        """Runner bundles, by platform and content."""
        return self.root / "runners"

    @property
    def bundles(self) -> Path:
        """Session bundles in the data folder, by sweep."""
        return self.root / "bundles"

    @property
    def bundle_cache(self) -> Path:
        """Local copies of bundles in object storage, by content; they may be removed at any time."""
        return self.root / "cache" / "bundles"

    @property
    def reports(self) -> Path:
        """Reports, one folder per sweep."""
        return self.root / "reports"

    @property
    def running(self) -> Path:
        """The progress of each sweep that runs; also of one that was killed, until its next start."""
        return self.root / "running"

    @property
    def registry(self) -> Path:
        """The health and the calibrations of each device."""
        return self.root / "devices"

    @property
    def prefect_home(self) -> Path:
        """Prefect's database and settings."""
        return self.root / "prefect"


def resolve_workspace(
    data_dir: str | None = None, bundles: str | None = None, warehouse: str | Path | None = None
) -> Workspace:
    """Return the workspace of these locations; the settings replace missing ones."""
    from devices.settings import settings  # slow to import

    present = settings()
    root, file = Path(data_dir or present.data_dir).absolute(), warehouse or present.warehouse
    return Workspace(root, Path(file) if file else None, bundles or present.bundles)
