"""A farm of emulated devices: its night and sweep have pages, the device is marked, and no time is shown."""

from collections.abc import Iterator
from typing import Any

import pytest

from sql.warehouse import open_read_only
from tasks.pages.site.page_cache import read_origins
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tasks.results.text import Tag
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.warehouse import BundleMaker

QEMU: dict[str, Any] = {"device__name": "qemu", "device__emulated": True, "device__facts": {"sme2": True}}
ENDED: dict[str, Any] = {**QEMU, **fields_of(1), "repetition": 5, "status": "failed", "reason_code": "device_lost"}


@pytest.fixture
def site(maker: BundleMaker) -> Iterator[Site]:
    """The site of one night of an emulated device: two sessions succeeded, one failed."""
    night_of(maker, 1, sessions=2, **QEMU)
    maker.session(reason="qemu: cable", **ENDED)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        yield Site(Reader(connection), "x")


def test_the_home_page_of_emulated_devices_gives_their_night_and_the_next_step(site: Site) -> None:
    home = Pages(site).read("index.html")
    assert home.answer.startswith("Nothing to judge: no series of a real device was measured. Emulated and ")
    assert "add a real device to the inventory" in home.answer
    # and it does not claim that no model changed
    assert "changed" not in home.words
    assert home.column("sessions", "Sweep") == ["nightly-2026-11-01"]
    assert home.column("sessions", "Device", table=1) == home.column("farm", "Device") == ["qemu emulated"]
    assert Pages(site).read("sme2.html").answer.startswith("Only emulated or simulated devices of this farm have SME2")


def test_night_sweep_and_failed_session_of_emulated_devices_are_published(site: Site) -> None:
    sweep = Pages(site).read("sweeps/nightly-2026-11-01.html")
    assert "qemu emulated: three sessions" in sweep.words["provenance"].replace(" :", ":")
    # and the failed session has a page
    [failed] = [name for name in read_origins(site) if name.startswith("sessions/")]
    assert {"nights/2026-11-01.html", "sweeps/nightly-2026-11-01.html"} <= set(read_origins(site))
    page = site.page(failed)
    assert page is not None
    # and its name stays as it is in the inventory
    assert "device_lost. qemu: cable." in "".join(page.answer)
    assert Tag("emulated") in page.subtitle


def test_the_pages_of_cell_and_session_mark_an_emulated_device_and_show_no_time(site: Site, maker: BundleMaker) -> None:
    [(cell, session)] = maker.ask("SELECT cell, session_id FROM _session WHERE status = 'succeeded' LIMIT 1")
    of_cell, of_session = site.page(f"cells/{cell}.html"), site.page(f"sessions/{session}.html")
    assert of_cell is not None
    assert of_session is not None
    assert Tag("emulated") in of_cell.subtitle
    assert Tag("emulated") in of_session.subtitle
    assert set(Pages(site).read(f"cells/{cell}.html").column("sessions", "Time")) == {"\u2013"}
    assert of_session.answer == "Succeeded."


def test_a_model_without_a_verdict_has_a_page_with_its_operators_and_failures_and_no_time(site: Site) -> None:
    pages = Pages(site)
    # given a model that only an emulated device measured, the list of models leads to its page
    listed = pages.read("models.html")
    assert listed.column("all", "Model") == ["toy"]
    assert listed.column("all", "Devices") == ["qemu"]
    assert {"models/toy.html", "devices/qemu.html"} <= set(listed.links)
    assert "models/toy.html" in read_origins(site)
    # then the page states what is missing, what failed, and no time
    page = pages.read("models/toy.html")
    assert page.answer.startswith("This model has no verdict, on qemu.")
    assert "Qemu: cable." in page.words["failures"]
    assert " ms" not in " ".join(page.words.values())


def test_the_page_of_an_emulated_device_marks_it_in_its_title(site: Site) -> None:
    page = site.page("devices/qemu.html")
    assert page is not None
    assert Tag("emulated") in page.subtitle


def test_a_device_shows_the_sessions_of_all_sweeps_of_its_newest_night(maker: BundleMaker) -> None:
    # given a night with two sweeps of three and two sessions, and the night before
    other = {"sweep_id": "gate-2026-11-02", "name": "gate", "night": "2026-11-02"}
    night_of(maker, 1)
    night_of(maker, 2, sessions=3)
    night_of(maker, 2, sessions=2, sweep=other)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        page = Pages(Site(Reader(connection), "x")).read("devices.html")
    assert page.column("all", "Sessions") == page.column("all", "Succeeded") == ["5"]


def test_a_night_of_emulated_devices_alone_follows_that_of_real_ones(maker: BundleMaker) -> None:
    night_of(maker, 1)
    night_of(maker, 2, sessions=1, **QEMU)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        pages = Pages(Site(Reader(connection), "x"))
        home, nights = pages.read("index.html"), pages.read("nights.html")
    # then home is that night, and does not advise a farm with real devices to add one
    assert home.answer.endswith("no series of a real device was measured. How its sweeps ran is below.")
    assert nights.column("all", "Night") == ["2026-11-02", "2026-11-01"]
    assert nights.column("all", "Series") == ["0", "1"]


def test_sessions_without_a_verdict_change_the_pages_of_their_night_and_device(maker: BundleMaker) -> None:
    def origins() -> dict[str, str]:
        with open_read_only(maker.warehouse) as connection:
            return read_origins(Site(Reader(connection), "x"))

    night_of(maker, 1)
    night_of(maker, 1, **QEMU)
    maker.load()
    before = origins()
    # when one more session of the night fails on the emulated device
    maker.session(reason="cable", **ENDED)
    maker.load()
    after = origins()
    assert {name for name, origin in before.items() if origin != after[name]} == {
        "nights/2026-11-01.html",
        "devices/qemu.html",
        "sweeps/nightly-2026-11-01.html",
    }
