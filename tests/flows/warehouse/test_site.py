"""The live pages: read-only, from the newest snapshot."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from flows.warehouse.publish import load_and_publish
from flows.warehouse.site import build_app, open_site
from tasks.pages.html import File
from tasks.pages.site.site import Site
from tasks.store.files import hash_file
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command, run_etfarm
from tests.fixtures.farm import ETFARM
from tests.fixtures.nights import night_of
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.fixtures.warehouse import BundleMaker

PATIENCE_S = 2 * ENOUGH_S


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose snapshot has one night."""
    folder: Path = tmp_path_factory.mktemp("measured") / "var"
    publish_nights(folder, 1)
    return folder


def publish_nights(data_dir: Path, last: int) -> None:
    """Measure nights in a data folder, from the first of November on."""
    maker = BundleMaker(data_dir.with_name(f"made{last}"))
    for day in range(1, last + 1):
        night_of(maker, day, sessions=2, model__name=f"model{day}")
    load_and_publish(Workspace(data_dir), [maker.bundles])


@contextmanager
def visit(data_dir: Path) -> Iterator[TestClient]:
    """The pages of a data folder."""
    with closing(open_site(Workspace(data_dir))) as site:
        yield TestClient(build_app(site), base_url="http://localhost")


def test_pages_of_a_new_night_are_found_before_its_home_page_is_made(
    measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir, is_made, make = Path(shutil.copytree(measured, tmp_path / "var")), threading.Event(), Site.file

    def slowly(site: Site, address: str) -> File | None:
        assert address != "index.html" or is_made.wait(PATIENCE_S)
        return make(site, address)

    with visit(data_dir) as client:
        assert "2026-11-01" in client.get("/").text
        # given a night that was loaded just now, and a home page that is not made yet
        publish_nights(data_dir, 2)
        monkeypatch.setattr(Site, "file", slowly)
        # when its pages are requested, then they are there, beside the former home page
        for address in ("/nights/2026-11-02.html", "/models/model2.html"):
            assert client.get(address).status_code == 200
        assert client.get("/nights/2026-11-03.html").status_code == 404
        assert "2026-11-02" not in client.get("/").text
        is_made.set()
        wait_for(lambda: "2026-11-02" in client.get("/").text, "the page of the new night")


def test_without_a_snapshot_the_page_has_the_command_that_publishes_one(tmp_path: Path) -> None:
    with visit(tmp_path) as client:
        answer = client.get("/")
    assert (answer.status_code, "no snapshot was published here yet; publish one with" in answer.text) == (503, True)


def test_no_address_reaches_files_or_sql(measured: Path) -> None:
    with visit(measured) as client:
        assert "There is no page models/unknown.html." in client.get("/models/unknown.html").text
        for address in ("%2e%2e/etc/passwd", "assets/../../x", "sessions/%27%20OR%201=1.html", "cells/%00.html"):
            assert client.get(f"/{address}").status_code == 404, address


def hash_files(folder: Path) -> dict[str, str]:
    """The hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hash_file(path) for path in files}


@pytest.mark.thorough
def test_the_command_publishes_the_same_bytes_each_time(measured: Path, tmp_path: Path, command: Command) -> None:
    # given the same snapshot, which two processes publish: sets and dictionaries are in another order for each seed
    assert os.environ.get("PYTHONHASHSEED", "random") != "1"
    words, seed = ("site", "--data-dir", measured, "--publish"), {"PYTHONHASHSEED": "1"}
    done = run_etfarm(*words, tmp_path / "other", env=os.environ | seed)
    assert done.returncode == 0, done.stderr
    published = command(*words, tmp_path / "site")
    assert published.out.endswith(f"{tmp_path / 'site'}/index.html\n")
    # then every file is the same, that which lists them, too
    hashes = hash_files(tmp_path / "site")
    assert {"index.html", "published.json"} <= hashes.keys()
    assert hash_files(tmp_path / "other") == hashes


def test_a_page_that_somebody_changed_is_named_and_the_exit_code_1(
    measured: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = SimpleNamespace(pages=1, written=0, removed=0, foreign=["index.html"])
    monkeypatch.setattr("tasks.pages.site.publish.publish", lambda *_: done)
    ended = command("site", "--data-dir", measured, "--publish", "x")
    assert (ended.code, "one file left unchanged" in ended.err, "(index.html)" in ended.err) == (1, True, True)


def test_ctrl_c_ends_the_pages_with_a_sentence_while_a_snapshot_is_prepared(measured: Path) -> None:
    command = [*ETFARM, "site", "--data-dir", str(measured), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Ctrl-C ends them" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert (process.returncode, rest.count("\n"), rest.startswith("etfarm: ")) == (130, 1, True), rest
