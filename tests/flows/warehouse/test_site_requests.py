"""What the live pages answer to many readers at once, and to strangers."""

import http.client
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from devices.errors import InputError
from flows.warehouse.site import LiveSite, SiteServer, host_names, open_site
from tasks.pages.html import File
from tasks.pages.site.site import Site
from tasks.store.workspace import Workspace
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.fixtures.warehouse import BundleMaker

PATIENCE_S = 2 * ENOUGH_S


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty warehouse."""
    return BundleMaker(tmp_path_factory.mktemp("empty")).warehouse


@pytest.fixture
def site(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveSite]:
    """The pages of an empty warehouse; the only one is the home page, whose content is its address."""
    answer_with(monkeypatch, lambda address: address == "index.html")
    with closing(open_site(Workspace(warehouse.parent / "var", warehouse))) as site:
        yield site


def answer_with(monkeypatch: pytest.MonkeyPatch, is_there: Callable[[str], bool]) -> None:
    monkeypatch.setattr(Site, "file", lambda _, address: File("text/html", address) if is_there(address) else None)


@pytest.fixture
def server(site: LiveSite) -> Iterator[SiteServer]:
    """A server of the pages, which other names lead to, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = SiteServer(site, host_names(["Farm.Example.", "[fd00::1]"]))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_for(lambda: server.started, "the server")
        yield server
        server.should_exit = True
        thread.join()


def ask(server: SiteServer, method: str, address: str, host: str) -> tuple[int, http.client.HTTPMessage, str]:
    """Send one request; return status, headers and text of the answer."""
    port = server.servers[0].sockets[0].getsockname()[1]
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request(method, address, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def test_pages_are_answered_under_stated_names_and_those_of_this_machine_alone(server: SiteServer) -> None:
    names = ("localhost", "127.0.0.1", "[::1]", "farm.example", "FARM.EXAMPLE.", "farm.example:443", "[fd00::1]:80")
    for host in names:
        assert ask(server, "GET", "/", host)[::2] == (200, "index.html"), host
    for host in ("evil.example", "farm.example.evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "[::1"):
        status, _, text = ask(server, "GET", "/", host)
        assert (status, text.count("\n"), "--host-name" in text) == (421, 1, True), host


def test_every_answer_forbids_what_no_page_needs(server: SiteServer) -> None:
    for method, address, host, status in (
        ("GET", "/", "localhost", 200),
        ("GET", "/none.html", "localhost", 404),
        *((method, "/", "localhost", 405) for method in ("POST", "PUT", "DELETE", "PATCH")),
        ("GET", f"/comparisons/{'.' * 60_000}", "localhost", 414),
        ("GET", "/", "evil.example", 421),
    ):
        answered, headers, _ = ask(server, method, address, host)
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert {policy[name] for name in ("default-src", "frame-ancestors", "base-uri", "form-action")} == {"'none'"}
        assert (answered, policy["script-src"], policy["style-src"]) == (status, "'self'", "'self'")
        others = [headers[name] for name in ("X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy")]
        assert others == ["DENY", "nosniff", "no-referrer"]


def test_what_is_not_a_host_name_is_refused() -> None:
    for name in ("", "http://farm.example", "farm.example:443", "farm example", "[::1"):
        with pytest.raises(InputError, match="--host-name"):
            host_names(["farm.example", name])


def test_different_pages_are_made_side_by_side_and_each_once(site: LiveSite, monkeypatch: pytest.MonkeyPatch) -> None:
    # given pages that are ready only when another one is being rendered, too
    together, rendered = threading.Barrier(2, timeout=PATIENCE_S), Counter[str]()

    def file(_: Site, address: str) -> File:
        rendered[address] += 1
        together.wait()
        return File("text/html", address)

    assert site.answer("index.html").status_code == 200
    monkeypatch.setattr(Site, "file", file)
    # when each of two is requested by several readers at once, then all have it
    with ThreadPoolExecutor(8) as readers:
        addresses = ["models/a.html", "models/b.html"] * 4
        assert [bytes(answer.body).decode() for answer in readers.map(site.answer, addresses)] == addresses
    assert rendered == {"models/a.html": 1, "models/b.html": 1}


def test_a_page_that_cannot_be_made_is_made_again(site: LiveSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Site, address: str) -> File:
        raise duckdb.OutOfMemoryException("could not allocate")

    monkeypatch.setattr(Site, "file", fail)
    answer = site.answer("models/a.html")
    assert (answer.status_code, b"could not allocate" in answer.body) == (503, True)
    answer_with(monkeypatch, lambda _: True)
    assert site.answer("models/a.html").body == b"models/a.html"


def test_the_end_of_the_pages_ends_what_is_being_made(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a home page that takes longer than anybody waits, inside DuckDB
    is_asked = threading.Event()

    def file(site: Site, address: str) -> None:
        is_asked.set()
        site.reader.connection.execute("SELECT count(*) FROM range(10000000000000) a WHERE hash(a.range) = 1")

    monkeypatch.setattr(Site, "file", file)
    site = open_site(Workspace(warehouse.parent / "var", warehouse))
    assert is_asked.wait(PATIENCE_S)
    # when the pages are closed, then nothing is rendered any more
    site.close()
    assert site._prepared.done()


def test_a_page_of_several_queries_ends_with_the_server(server: SiteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a page that is rendered until its third query was interrupted
    interrupts, is_requested = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(LiveSite, "interrupt", lambda _: interrupts.release())

    def is_there(_address: str) -> bool:
        is_requested.set()
        return all(interrupts.acquire(timeout=PATIENCE_S) for _ in range(3))

    answer_with(monkeypatch, is_there)
    with ThreadPoolExecutor(1) as reader:
        status = reader.submit(lambda: ask(server, "GET", "/page", "localhost")[0])
        assert is_requested.wait(PATIENCE_S)
        # when the server ends, then each of them is
        server.should_exit = True
        assert status.result() == 200
