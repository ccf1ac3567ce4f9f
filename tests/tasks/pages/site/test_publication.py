"""A publication that ends at any moment, or whose disk is full, loses no file and leaves none that nobody knows."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from devices.errors import InputError
from tasks.pages.site.destination import open_destination
from tests.fixtures.publications import Killed, files_at, mortal, publish_pages

FIRST = {"index.html": b"home 1", "a/one.html": b"one", "a/b/two.js": b"two", "a/gone.html": b"gone"}
SECOND = {"index.html": b"home 2", "a/one.html": b"one", "a/b/two.js": b"two 2", "c/new.html": b"new"}


@pytest.fixture(params=["folder", "memory"])
def locations(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where sites are published: the beginning of folders, or of prefixes of a storage in memory."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # takes most of the time
    return str(tmp_path) if request.param == "folder" else "memory://farm"


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()


def points_of(location: str) -> list[str]:
    """Every point at which the publications of the first and the second site write, by name."""
    with mortal() as ends:
        publish_pages(location, FIRST)
        publish_pages(location, SECOND)
    return ends.points


@pytest.mark.fault
def test_after_a_kill_at_any_point_the_next_publication_is_what_a_first_one_would_be(locations: str) -> None:
    # given what two publications write, among it the manifest before and after the pages, and the removal of a page
    points = points_of(f"{locations}/whole")
    assert sum("published.json" in point for point in points) > 4
    assert any(point.startswith(("unlink gone", "rm_file gone")) for point in points)
    publish_pages(f"{locations}/fresh", SECOND)
    assert files_at(f"{locations}/whole") == files_at(f"{locations}/fresh")
    # when they are killed at each of these points, and the second one is repeated
    for number, point in enumerate(points):
        location = f"{locations}/{number}"
        with contextlib.suppress(Killed), mortal(ends_at=number):
            publish_pages(location, FIRST)
            publish_pages(location, SECOND)
        publication = publish_pages(location, SECOND)
        # then every file is that of a first publication, and there is no other
        assert (point, files_at(location)) == (point, files_at(f"{locations}/fresh"))
        assert publication.foreign == []


@pytest.mark.fault
def test_a_full_disk_leaves_no_partial_file_and_nothing_after_the_next_publication(locations: str) -> None:
    points = points_of(f"{locations}/whole")
    for number, point in enumerate(points):
        location = f"{locations}/{number}"
        with contextlib.suppress(OSError), mortal(fails_at=number):
            publish_pages(location, FIRST)
            publish_pages(location, SECOND)
        assert set(files_at(location)) <= {*FIRST, *SECOND, "published.json"}, point
        publish_pages(location, SECOND)
        assert files_at(location) == files_at(f"{locations}/whole"), point


def test_two_publications_to_a_folder_at_once_are_refused(tmp_path: Path) -> None:
    with open_destination(str(tmp_path / "site")), pytest.raises(InputError, match="another `etfarm site --publish`"):
        publish_pages(str(tmp_path / "site"), FIRST)


def test_nothing_new_writes_nothing_and_a_page_that_somebody_removed_is_written_again(locations: str) -> None:
    location = f"{locations}/site"
    publish_pages(location, FIRST)
    with mortal() as ends:
        publish_pages(location, FIRST)
    assert ends.points == []
    with open_destination(location) as opened:
        opened.remove(["a/one.html"])
    assert publish_pages(location, FIRST).written == 1
    assert files_at(location)["a/one.html"] == b"one"
