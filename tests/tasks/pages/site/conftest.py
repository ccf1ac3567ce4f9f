"""A farm of three devices, four models and twelve nights, and every page of it."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sql.warehouse import open_read_only
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tests.fixtures.big_farm import write_big_farm
from tests.fixtures.pages import Pages


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated farm: two models got slower, one device did, one device is emulated."""
    path: Path = tmp_path_factory.mktemp("farm") / "warehouse.duckdb"
    write_big_farm(path, devices=3, models=4, nights=12)
    return path


@pytest.fixture(scope="session")
def connection(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The farm's warehouse, for questions of a test."""
    with open_read_only(warehouse) as connection:
        yield connection


@pytest.fixture(scope="session")
def pages(connection: duckdb.DuckDBPyConnection) -> Pages:
    """The pages of the farm."""
    return Pages(Site(Reader(connection), "warehouse.duckdb"))
