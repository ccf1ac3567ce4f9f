"""The var folder, which contains all files that the farm writes."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Var:
    """Paths under the var folder (default `./var`; set with `--var` or ETFARM_VAR)."""

    root: Path

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
        """Session bundles, by sweep: the source of truth."""
        return self.root / "bundles"

    @property
    def bundle_cache(self) -> Path:
        """Local copies of bundles in object storage, by content; they may be removed at any time."""
        return self.root / "cache" / "bundles"

    @property
    def warehouse(self) -> Path:
        """The DuckDB file that the loader writes."""
        return self.root / "warehouse" / "warehouse.duckdb"

    @property
    def snapshots(self) -> Path:
        """Published copies of the warehouse, which readers open."""
        return self.root / "warehouse" / "snapshots"

    @property
    def reports(self) -> Path:
        """Reports, one folder per sweep."""
        return self.root / "reports"

    @property
    def registry(self) -> Path:
        """The health of each device."""
        return self.root / "devices"

    @property
    def prefect_home(self) -> Path:
        """Prefect's database and settings."""
        return self.root / "prefect"


def stated_var(var: str | None) -> Var:
    """Return the var folder that a deployment states, or that of ETFARM_VAR: a worker has no option `--var`."""
    return Var(Path(var or os.environ.get("ETFARM_VAR") or "var").absolute())
