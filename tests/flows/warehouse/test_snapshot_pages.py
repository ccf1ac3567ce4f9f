"""The pages of one snapshot, of which some cannot be rendered."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest

from flows.warehouse.snapshot_pages import SnapshotPages
from sql.errors import WarehouseError
from sql.readable import ReadableFile
from sql.warehouse import open_read_only
from tasks.pages.site.site import Site
from tests.fixtures.nights import night_of
from tests.fixtures.warehouse import BundleMaker


def test_pages_that_fail_leave_nothing_in_memory(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    night_of(maker, 1)
    maker.load()

    @contextlib.contextmanager
    def snapshot() -> Iterator[ReadableFile]:
        yield ReadableFile(maker.warehouse, True, maker.warehouse)

    def fail(site: Site, _: str) -> None:
        sweep_id, *measured = site.reader.connection.execute("SELECT sweep_id, model, device FROM cell").fetchall()[0]
        site.reader.excerpt(sweep_id, {tuple(measured)})
        raise duckdb.OutOfMemoryException("no memory is left")

    pages = SnapshotPages(snapshot, None)
    with patch.object(Site, "file", fail), open_read_only(maker.warehouse) as connection:
        for address in ("a.html", "b.html"):
            with pytest.raises(WarehouseError, match="no memory is left"):
                pages.file(address)
        names = connection.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall()
    assert names == [("warehouse",)]
    pages.retire()
