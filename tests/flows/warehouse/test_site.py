"""The live pages: read-only, from the newest snapshot."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from flows.warehouse.publish import load_and_publish
from flows.warehouse.site import LiveSite, build_app, open_site
from tasks.pages.html import File
from tasks.pages.site.site import Site
from tasks.store.files import hash_file
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command, run_etfarm
from tests.fixtures.nights import night_of
from tests.fixtures.waiting import wait_for
from tests.fixtures.warehouse import BundleMaker

PATIENCE_S = 60


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose snapshot has one night."""
    folder: Path = tmp_path_factory.mktemp("measured") / "var"
    publish_nights(folder, 1)
    return folder


@pytest.fixture(scope="module")
def client(measured: Path) -> Iterator[TestClient]:
    """A reader of its pages."""
    with closing(open_site(Workspace(measured))) as site:
        yield TestClient(build_app(site), base_url="http://localhost")


@pytest.fixture
def data_dir(measured: Path, tmp_path: Path) -> Path:
    """The same for one test alone."""
    return Path(shutil.copytree(measured, tmp_path / "var"))


def publish_nights(data_dir: Path, last: int) -> None:
    """Measure nights in a data folder, from the first of November on."""
    maker = BundleMaker(data_dir.with_name(f"made{last}"))
    for day in range(1, last + 1):
        night_of(maker, day, model__name=f"model{day}")
    load_and_publish(Workspace(data_dir), [maker.bundles])


Visit = Callable[[Path], TestClient]


@pytest.fixture
def visit() -> Iterator[Visit]:
    """Visit the pages of data folders, which are closed at the end."""
    with ExitStack() as stack:

        def visit(data_dir: Path) -> TestClient:
            site: LiveSite = stack.enter_context(closing(open_site(Workspace(data_dir))))
            return TestClient(build_app(site), base_url="http://localhost")

        yield visit


def test_home_shows_the_newest_night_and_follows_the_snapshot(data_dir: Path, visit: Visit) -> None:
    client = visit(data_dir)
    assert "2026-11-01" in client.get("/").text
    # when another night is loaded
    publish_nights(data_dir, 2)
    # then the former page is shown until that of the new night is made, at the same address
    assert "2026-11-01" in client.get("/index.html").text
    wait_for(lambda: "2026-11-02" in client.get("/index.html").text, "the page of the new night")
    assert client.get("/models/model2.html").status_code == 200


def test_a_page_of_the_newest_night_is_found_before_its_home_page_is_made(
    data_dir: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = visit(data_dir)
    assert "2026-11-01" in client.get("/").text
    # given a night that was loaded just now, and a home page that is not made yet
    publish_nights(data_dir, 2)
    is_made, make = threading.Event(), Site.file

    def slowly(site: Site, address: str) -> File | None:
        assert address != "index.html" or is_made.wait(PATIENCE_S)
        return make(site, address)

    monkeypatch.setattr(Site, "file", slowly)
    # when its pages are requested, then they are there, beside the former home page
    for address in ("/nights/2026-11-02.html", "/models/model2.html"):
        assert client.get(address).status_code == 200
    assert client.get("/nights/2026-11-03.html").status_code == 404
    assert "2026-11-02" not in client.get("/").text
    is_made.set()
    wait_for(lambda: "2026-11-02" in client.get("/").text, "the page of the new night")


def test_an_unknown_address_is_answered_with_a_page(client: TestClient) -> None:
    answer = client.get("/models/unknown.html")
    assert answer.status_code == 404
    assert "There is no page models/unknown.html." in answer.text


def test_without_a_snapshot_the_page_has_the_command_that_publishes_one(tmp_path: Path, visit: Visit) -> None:
    answer = visit(tmp_path).get("/")
    assert answer.status_code == 503
    assert "no snapshot was published here yet; publish one with" in answer.text


def test_only_reading_is_answered(client: TestClient) -> None:
    answers = {method: client.request(method, "/index.html") for method in ("POST", "PUT", "DELETE", "PATCH")}
    assert {method: answer.status_code for method, answer in answers.items()} == dict.fromkeys(answers, 405)


def test_no_address_reaches_files_or_sql(client: TestClient) -> None:
    for address in ("%2e%2e/etc/passwd", "assets/../../x", "sessions/%27%20OR%201=1.html", "cells/%00.html"):
        assert client.get(f"/{address}").status_code == 404, address


def hash_files(folder: Path) -> dict[str, str]:
    """The hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hash_file(path) for path in files}


def test_the_command_publishes_the_same_bytes_each_time_and_prints_the_address(
    data_dir: Path, tmp_path: Path, command: Command
) -> None:
    # given the same snapshot, which two processes publish: sets and dictionaries are in another order for each seed
    for seed, name in enumerate(("site", "other")):
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        done = run_etfarm("site", "--data-dir", data_dir, "--publish", tmp_path / name, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"{tmp_path / name}/index.html\n")
    # then every file is the same, that which lists them, too
    hashes = hash_files(tmp_path / "site")
    assert {"index.html", "published.json"} <= hashes.keys()
    assert hash_files(tmp_path / "other") == hashes
    # and a page that somebody changed stays in the next publication, which names it and exits with 1
    (tmp_path / "site/index.html").write_text("mine")
    publish_nights(data_dir, 2)
    ended = command("site", "--data-dir", data_dir, "--publish", tmp_path / "site")
    assert ended.code == 1
    assert "one file left unchanged, because etfarm did not write the content (index.html)" in ended.err


def test_a_missing_warehouse_and_a_folder_that_cannot_be_written_are_one_sentence(
    measured: Path, tmp_path: Path, command: Command
) -> None:
    published = [("--data-dir", measured, "--publish", folder) for folder in ("/proc/none", "")]
    for arguments in (("--data-dir", tmp_path / "none"), *published):
        ended = command("site", *arguments)
        assert (ended.code, ended.err.count("\n"), ended.err.startswith("etfarm: ")) == (2, 1, True), ended.err


def test_ctrl_c_ends_the_pages_with_a_sentence_while_a_snapshot_is_prepared(measured: Path) -> None:
    command = [sys.executable, "-m", "flows.cli.main", "site", "--data-dir", str(measured), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Ctrl-C ends them" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    sentence = "etfarm: the pages are no longer served; start them again with the same command\n"
    assert (process.returncode, rest) == (130, sentence)
