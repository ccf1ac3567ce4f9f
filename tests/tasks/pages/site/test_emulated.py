"""A farm of emulated devices: its night and sweep have pages, the device is marked, and no time is shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import open_read_only
from tasks.pages.site.page_keys import read_keys
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.warehouse import BundleMaker

QEMU: dict[str, Any] = {"device__name": "qemu", "device__emulated": True, "device__facts": {"sme2": True}}
ENDED: dict[str, Any] = {**QEMU, **fields_of(1), "repetition": 5, "status": "failed", "reason_code": "device_lost"}


@pytest.fixture(scope="module")
def qemu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One night of an emulated device: two sessions succeeded, one failed."""
    maker = BundleMaker(tmp_path_factory.mktemp("qemu"))
    night_of(maker, 1, sessions=2, **QEMU)
    maker.session(reason="qemu: cable", **ENDED)
    maker.load()
    return maker.warehouse


@pytest.fixture(scope="module")
def pages(qemu: Path) -> Iterator[Pages]:
    with open_read_only(qemu) as connection:
        yield Pages(Site(Reader(connection), "x"))


def test_the_home_page_of_emulated_devices_gives_their_night_and_the_next_step(pages: Pages) -> None:
    home = pages.read("index.html")
    assert home.answer.startswith("Nothing to judge: no series of a real device was measured. Emulated and ")
    assert "add a real device to the inventory" in home.answer
    assert "changed" not in home.words
    assert home.words["farm"].startswith("The farm qemu emulated: 1 of 3 sessions failed or invalid: device_lost 1")
    night = pages.read("nights/2026-11-01.html")
    assert night.column("sessions", "Sweep") == ["nightly-2026-11-01"]
    assert night.column("sessions", "Device", table=1) == ["qemu emulated"]
    assert pages.read("sme2.html").answer.startswith("Only emulated or simulated devices of this farm have SME2")


def test_night_sweep_and_failed_session_of_emulated_devices_are_published(pages: Pages) -> None:
    published = read_keys(pages.site)
    assert {"nights/2026-11-01.html", "sweeps/nightly-2026-11-01.html", "models/toy.html"} <= published.keys()
    [failed] = [name for name in published if name.startswith("sessions/")]
    # the name of the device stays as it is in the inventory
    assert "device_lost. qemu: cable." in pages.read(failed).answer
    find = "SELECT cell, session_id FROM _session WHERE status = 'succeeded' LIMIT 1"
    [(cell, session)] = pages.site.reader.connection.execute(find).fetchall()
    of_cell = pages.read(f"cells/{cell}.html").words
    assert "Time" not in of_cell["sessions"]
    assert of_cell["tree"].endswith("No times to draw: its device is emulated.")
    assert pages.read(f"sessions/{session}.html").answer == "Succeeded."


def test_a_night_of_emulated_devices_alone_follows_that_of_real_ones(maker: BundleMaker) -> None:
    night_of(maker, 1, sessions=1)
    night_of(maker, 2, sessions=1, **QEMU)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        pages = Pages(Site(Reader(connection), "x"))
        home, nights = pages.read("index.html"), pages.read("nights.html")
    # then home is that night, and does not advise a farm with real devices to add one
    assert home.answer.endswith("no series of a real device was measured. How its sweeps ran.")
    assert (nights.column("all", "Night"), nights.column("all", "Series")) == (["2026-11-02", "2026-11-01"], ["0", "1"])
