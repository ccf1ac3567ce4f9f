"""A site is published only to a place of its own, and touches nothing there that it did not write."""

import json
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from devices.errors import FarmError, InputError
from tasks.pages.site.destination import open_destination
from tasks.pages.site.published_pages import build_manifest, parse_manifest
from tasks.results import addresses
from tests.fixtures.publications import files_at, publish_pages
from tests.fixtures.s3 import objects_of, s3_client

PAGES = {"index.html": b"home", "a/one.html": b"one", "a/gone.html": b"gone"}
NEWER = {"index.html": b"newer", "a/one.html": b"one 2"}


@pytest.fixture(params=["folder", "memory"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder that does not exist, or a prefix of a storage in memory."""
    yield str(tmp_path / "site") if request.param == "folder" else "memory://farm/site"
    MemoryFileSystem.store.clear()


def put(location: str, name: str, content: bytes) -> None:
    if "://" in location:
        MemoryFileSystem().pipe_file(f"{location}/{name}", content)
    else:
        (path := Path(location, name)).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def manifest_with(**pages: Any) -> bytes:
    return json.dumps({"etfarm": "0.1", "format": "etfarm site 1", "pages": pages, "writing": {}}).encode()


@pytest.mark.parametrize("name", ["index.html", "a/b/c.txt", ".hidden"])
@pytest.mark.fault
def test_a_place_with_files_of_others_is_refused_as_it_is(location: str, name: str) -> None:
    put(location, name, b"mine")
    with pytest.raises(InputError, match="has files that etfarm did not publish; name an empty"):
        publish_pages(location, PAGES)
    assert files_at(location) == {name: b"mine"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"name": "a package", "version": "1.0"}',
        b'{"etfarm": "0.1", "pages": {}, "files": []}',
        manifest_with(**{"index.html": ["x", "not a hash"]}),
        b"[" * 100_000,
        *(
            manifest_with(**{name: ["x", "0" * 64]})
            for name in (
                *("../outside.html", "a/../../outside.html", "/outside.html", "a\\..\\outside.html", "c:/outside.html"),
                *("a\0.html", "", "a//b.html", ".hidden", "published.json", "x" * 300),
            )
        ),
    ],
)
def test_a_manifest_that_etfarm_did_not_write_is_refused_as_it_is(tmp_path: Path, content: bytes) -> None:
    # given a folder with a file, and beside it another one, which the manifest of the folder may name
    site = tmp_path / "site"
    put(str(site), "published.json", content)
    put(str(site), "index.html", b"mine")
    (tmp_path / "outside.html").write_bytes(b"mine")
    before = files_at(str(tmp_path))
    # when it is published, then one sentence names the manifest, and nothing is changed
    with pytest.raises(InputError) as refused:
        publish_pages(str(site), PAGES)
    assert str(refused.value).startswith(f"{site}/published.json: not a manifest of etfarm (")
    assert "\n" not in str(refused.value)
    assert files_at(str(tmp_path)) == before


@given(st.text(max_size=80), st.text(max_size=80))
def test_pages_of_any_names_are_in_a_manifest_that_is_read_again(name: str, other: str) -> None:
    pages = [addresses.model_page(name), addresses.sweep_page(name), addresses.history_file(name, date(2026, 1, 5))]
    pages.append(addresses.arms_page("precision", name, other))
    manifest = build_manifest(dict.fromkeys(pages, ("origin " * 1000, "0" * 64)), dict.fromkeys(pages, "1" * 64))
    assert parse_manifest(manifest.text(), "published.json") == manifest


def test_a_manifest_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "published.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FarmError, match=r"published\.json: has 1099511627776 bytes; the limit is"):
        publish_pages(str(tmp_path), PAGES)


@pytest.mark.fault
def test_a_file_that_was_changed_or_is_of_others_stays_and_is_named(location: str) -> None:
    # given a published site in which a page to be written and one to be removed were changed, and a file of others
    publish_pages(location, PAGES)
    for name in ("index.html", "a/gone.html", "a/other.html"):
        put(location, name, b"mine")
    # when a newer site is published there, which has a page at the address of that file
    pages = {**NEWER, "a/other.html": b"other"}
    publication = publish_pages(location, pages)
    assert publication.foreign == ["a/gone.html", "a/other.html", "index.html"]
    mine = {name: files_at(location)[name] for name in publication.foreign}
    assert mine == dict.fromkeys(publication.foreign, b"mine")
    assert files_at(location)["a/one.html"] == b"one 2"
    # and what hinders is named again until it is moved away; what is no longer of the site is not
    assert publish_pages(location, pages).foreign == ["a/other.html", "index.html"]
    with open_destination(location) as opened:
        opened.remove(["index.html", "a/other.html"])
    assert publish_pages(location, pages).foreign == []
    assert files_at(location)["index.html"] == b"newer"


def test_no_link_is_followed(tmp_path: Path) -> None:
    # given a published site whose home page was replaced by a link, and a folder elsewhere
    site = str(tmp_path / "site")
    publish_pages(site, PAGES)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/one.html").write_bytes(b"one")
    (tmp_path / "home.html").write_bytes(b"home")
    Path(site, "index.html").unlink()
    Path(site, "index.html").symlink_to(tmp_path / "home.html")
    assert publish_pages(site, NEWER).foreign == ["index.html"]
    assert (tmp_path / "home.html").read_bytes() == b"home"
    # and so stays what is no regular file, unopened
    Path(site, "index.html").unlink()
    os.mkfifo(Path(site, "index.html"))
    assert publish_pages(site, NEWER).foreign == ["index.html"]
    # and where a folder of pages was replaced by a link or a file, nothing is written
    for name in ("one.html", "gone.html"):
        Path(site, "a", name).unlink(missing_ok=True)
    Path(site, "a").rmdir()
    for make in (lambda path: path.symlink_to(tmp_path / "outside"), os.mkfifo):
        before = files_at(site)
        make(Path(site, "a"))
        with pytest.raises(InputError, match="site/a: is a link or a file, not a folder; move it away"):
            publish_pages(site, PAGES)
        assert files_at(site) == before
        Path(site, "a").unlink()
    assert (tmp_path / "outside/one.html").read_bytes() == b"one"
    (tmp_path / "outside/published.json").symlink_to(tmp_path / "site/published.json")
    with pytest.raises(FarmError, match=r"outside/published\.json: is a link"):
        publish_pages(str(tmp_path / "outside"), PAGES)


def test_a_bucket_is_published_to_by_the_same_rules(bucket: str) -> None:
    # given a bucket of an S3 server, in which a console made a folder for the farm, and a file of others beside it
    location, client = f"s3://{bucket}/site", s3_client()
    client.put_object(Bucket=bucket, Key="site/", Body=b"")
    client.put_object(Bucket=bucket, Key="site2/index.html", Body=b"mine")
    publish_pages(location, PAGES)
    # when a page is changed to nothing, and a newer site is published, then it stays, and the other page is written
    client.put_object(Bucket=bucket, Key="site/index.html", Body=b"")
    assert publish_pages(location, NEWER).foreign == ["index.html"]
    found = objects_of(bucket, "site/")
    assert (found["index.html"], found["a/one.html"]) == (b"", b"one 2")
    # and a prefix or a bucket with files of others is refused
    for other in ("site2", ""):
        with pytest.raises(InputError, match="has files that etfarm did not publish"):
            publish_pages(f"s3://{bucket}/{other}", PAGES)
    assert objects_of(bucket, "site2/") == {"index.html": b"mine"}


@pytest.mark.parametrize(
    ("location", "cause"),
    [
        (" ", "--publish: the location is empty"),
        ("file:///srv/pages", "--publish file:///srv/pages: name a folder by its path, without file://"),
        ("memory://", "--publish memory://: the bucket is missing"),
        ("s3://key:secret@bucket/farm", "--publish s3://...: the location contains credentials"),
    ],
)
def test_a_location_that_leads_nowhere_is_refused(location: str, cause: str) -> None:
    with pytest.raises(InputError) as refused:
        publish_pages(location, PAGES)
    assert str(refused.value).startswith(cause)
