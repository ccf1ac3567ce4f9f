"""The published site: complete, and written again only where it changed."""

import copy
import posixpath
import re
import shutil
from pathlib import Path

import pytest

from tasks.pages.html import as_html
from tasks.pages.page import Page, Section
from tasks.pages.site import page_keys
from tasks.pages.site import publish as publishing
from tasks.pages.site.published_pages import MARKER
from tasks.results.table import Cell, Column, Table
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.publications import files_at, publish_site
from tests.fixtures.warehouse import CONVOLUTION, BundleMaker


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[BundleMaker, Path]:
    """Two models on a device over two nights, and the folder of their pages."""
    folder = tmp_path_factory.mktemp("published")
    maker = BundleMaker(folder / "farm")
    for day in (2, 3):
        night_of(maker, day, sessions=1)
        night_of(maker, day, sessions=1, model__name="other")
    maker.load()
    done = publish_site(maker.warehouse, str(folder / "site"))
    files = files_at(str(folder / "site"))
    assert len(files) == done.pages + 1 == done.written + 1
    assert {"index.html", "feed.atom", "assets/series.js", "nights/2026-11-03.html", MARKER} <= set(files)
    return maker, folder / "site"


@pytest.fixture
def farm(published: tuple[BundleMaker, Path], tmp_path: Path) -> BundleMaker:
    """A copy of that farm, and in the folder `site` beside it its pages."""
    maker, site = published
    farm = copy.copy(maker)
    farm.bundles, farm.warehouse = tmp_path / "bundles", tmp_path / "warehouse.duckdb"
    shutil.copyfile(maker.warehouse, farm.warehouse)
    shutil.copytree(site, tmp_path / "site")
    return farm


def test_pages_that_are_read_together_are_those_that_are_read_alone_and_written_once(
    farm: BundleMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert publish_site(farm.warehouse, str(tmp_path / "site")).written == 0
    monkeypatch.setattr(publishing, "_READ_TOGETHER", 1)
    publish_site(farm.warehouse, str(tmp_path / "other"))
    assert files_at(str(tmp_path / "other")) == files_at(str(tmp_path / "site"))


def test_a_new_night_writes_what_it_changed_and_leaves_older_nights(farm: BundleMaker, tmp_path: Path) -> None:
    site = str(tmp_path / "site")
    before = files_at(site)
    night_of(farm, 4, sessions=1)
    farm.load()
    publish_site(farm.warehouse, site)
    # then the new night, the model and the pages about it are written, and nothing else
    after = files_at(site)
    changed = {name for name in after if before.get(name) != after[name]}
    assert {"index.html", "nights/2026-11-04.html", "nights/2026-11-03.html", "models/toy.html"} <= changed
    assert not {"nights/2026-11-02.html", "models/other.html", "assets/series.js"} & changed
    # and of the histories of a device one file, that of the week
    assert [name.rpartition("/")[2] for name in changed if name.startswith("histories/")] == ["2026-11-02.js"]
    # and it is what a publication into an empty folder would be
    publish_site(farm.warehouse, str(tmp_path / "fresh"))
    assert files_at(str(tmp_path / "fresh")) == after


def test_a_trace_that_comes_late_and_changes_no_verdict_is_on_the_page_of_its_model(
    farm: BundleMaker, tmp_path: Path
) -> None:
    farm.session([(1_000_000, {CONVOLUTION: 600_000})], mode="trace", repetition=0, **fields_of(3))
    farm.load()
    for name in ("site", "fresh"):
        publish_site(farm.warehouse, str(tmp_path / name))
    assert files_at(str(tmp_path / "site")) == files_at(str(tmp_path / "fresh"))


def test_no_page_links_to_one_that_was_removed(
    farm: BundleMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a published site that has the pages of two nights from now on
    monkeypatch.setattr(page_keys, "_MAX_NIGHTS", 2)
    for day in (4, 5):
        night_of(farm, day, sessions=1, model__name="other")
    farm.load()
    assert publish_site(farm.warehouse, str(tmp_path / "site")).removed > 0
    pages = files_at(str(tmp_path / "site"))
    for name in (name for name in pages if name.endswith(".html")):
        links = set(re.findall(rb'href="([^"#?:]+)["#?]', pages[name]))
        lead_to = {posixpath.normpath(posixpath.join(posixpath.dirname(name), link.decode())) for link in links}
        assert (name, lead_to - pages.keys()) == (name, set())


def test_sums_that_differ_in_their_last_digit_alone_make_the_same_page() -> None:
    def drawn(value: float) -> str:
        table = Table([Column("Share", numeric=True)], [[Cell("50.0", sort=value)]])
        return as_html(Page("x", [Section("all", "All", [table])], address="x.html"))

    # the order in which processes add up is not always the same
    assert drawn(0.735120967074214) == drawn(0.7351209670742141)
    assert drawn(0.7351209) != drawn(0.7351208)
