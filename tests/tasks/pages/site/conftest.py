"""Two farms that the tests of the site share, and their pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sql.warehouse import open_read_only
from tasks.pages.site.page_keys import read_keys
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tests.fixtures.big_farm import write_big_farm
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.paths import shared_folder
from tests.fixtures.warehouse import COMPARED, BundleMaker

EVIL_MODEL, EVIL_DEVICE = "</script><script>alert(1)</script>\u202e\x1b[2J", "../../x\u202e\x9b"
"""Names that would be HTML, a script, another folder, another direction of text or a command of a terminal."""


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three devices, four models, twelve nights: two models got slower, one device did, one device is emulated."""

    def fill(folder: Path) -> None:
        write_big_farm(folder / "warehouse.duckdb", devices=3, models=4, nights=12)

    return shared_folder(tmp_path_factory, "farm", fill) / "warehouse.duckdb"


@pytest.fixture(scope="session")
def connection(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_read_only(warehouse) as connection:
        yield connection


@pytest.fixture(scope="session")
def pages(connection: duckdb.DuckDBPyConnection) -> Pages:
    return Pages(Site(Reader(connection), "warehouse.duckdb"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """The pages, as they are published, of a farm of bundles: two nights in a week, and a third one two weeks later.

    Models with dots and evil names, one whose sessions started in another order than that of their ids, one with
    compared outputs, one that got slower and failed once, and a device with two sweeps in its newest night.
    """
    warehouse = shared_folder(tmp_path_factory, "small", _write_small) / "warehouse.duckdb"
    with open_read_only(warehouse) as connection:
        site = Site(Reader(connection), "small.duckdb")
        site.published = read_keys(site).keys()
        yield Pages(site)


def _write_small(folder: Path) -> None:
    maker = BundleMaker(folder)
    for day in (2, 3):
        for model in ("a..b", "c...d"):
            night_of(maker, day, sessions=1, model__name=model, accuracy=[COMPARED])
        night_of(maker, day, sessions=1, model__name=EVIL_MODEL, device__name=EVIL_DEVICE)
    for number, (minute, time_ms) in enumerate(((20, 3), (10, 2), (0, 1))):
        fields = fields_of(3) | {"started_at": f"2026-11-03T01:{minute:02}:00+00:00"}
        maker.session([time_ms * 1_000_000] * 3, model__name="ordered", repetition=number, **fields)
    for day, factor in ((2, 1.0), (3, 1.5)):
        night_of(maker, day, factor, model__name="slow", model__pte_sha256=f"p{day}")
    failed: dict[str, Any] = {"status": "failed", "reason_code": "device_lost", "reason": "cable"}
    maker.session(model__name="slow", repetition=9, **fields_of(3), **failed)
    night_of(maker, 20, sessions=1, model__name="a..b")
    for name, sessions in (("gate", 2), ("nightly", 3)):
        sweep = {"sweep_id": f"{name}-2026-11-03", "name": name, "night": "2026-11-03"}
        night_of(maker, 3, sessions=sessions, device__name="twice", sweep=sweep)
    assert maker.load().refused == []
