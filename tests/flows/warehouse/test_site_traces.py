"""Traces on the live pages: the viewer of this machine opens them, and alone may run WebAssembly."""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from fastapi.testclient import TestClient

from flows.traces import find_viewer
from flows.warehouse.publish import load_and_publish
from flows.warehouse.site import SiteServer, build_app, open_site
from tasks.store.workspace import Workspace
from tests.fixtures.needs import needs
from tests.fixtures.waiting import wait_for
from tests.fixtures.warehouse import BundleMaker

SESSION = "5e55104000000001"
MS = 1_000_000


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A farm with one session."""
    workspace = Workspace(tmp_path_factory.mktemp("farm") / "var")
    maker = BundleMaker(workspace.root)
    maker.session([3 * MS] * 3, session_id=SESSION)
    load_and_publish(workspace, [maker.bundles])
    return workspace


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with closing(open_site(workspace)) as site:
        yield TestClient(build_app(site, (), lambda: workspace.store), base_url="http://localhost")


def test_the_page_of_a_session_leads_to_its_trace_in_the_viewer(client: TestClient) -> None:
    if find_viewer() is None:
        pytest.skip("the extra `trace` is not installed")
    assert f'href="../traces/{SESSION}"' in client.get(f"/sessions/{SESSION}.html").text
    assert 'href="../perfetto/"' in client.get(f"/traces/{SESSION}").text
    assert client.get(f"/traces/{SESSION}.json").json()["traceEvents"]
    # and the viewer alone may run WebAssembly
    policies = [
        client.get(address).headers["Content-Security-Policy"] for address in ("/perfetto/", f"/traces/{SESSION}")
    ]
    assert ["unsafe-eval" in policy for policy in policies] == [True, False]


def test_no_address_of_a_trace_reaches_another_file(client: TestClient) -> None:
    for name in ("0" * 16, "..", "%2e%2e%2fvar", "var", f"..%2f{SESSION}"):
        assert client.get(f"/traces/{name}.json").status_code == 404, name
    assert client.get("/perfetto/%2e%2e/__init__.py").status_code == 404


def test_without_the_viewer_its_address_states_how_to_install_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.warehouse.site_traces.find_viewer", lambda: None)
    with closing(open_site(workspace)) as site:
        client = TestClient(build_app(site, (), lambda: workspace.store), base_url="http://localhost")
        answer, foreign = (client.get(f"/traces/{name}") for name in (SESSION, "x;reboot"))
    assert (answer.status_code, "pip install &#39;etfarm[trace]&#39;" in answer.text) == (503, True)
    assert (foreign.status_code, "etfarm trace x;reboot" in foreign.text) == (404, False)


@pytest.mark.thorough
def test_a_browser_opens_the_trace_from_the_page_and_reaches_no_other_server(workspace: Workspace) -> None:
    needs("chromium")
    from playwright.sync_api import sync_playwright

    requested: list[str] = []
    with closing(open_site(workspace)) as site, socket.create_server(("127.0.0.1", 0)) as listener:
        server = SiteServer(site, (), lambda: workspace.store)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        wait_for(lambda: server.started, "the server")
        here = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.on("requestfinished", lambda request: requested.append(request.url))
            page.goto(f"{here}/sessions/{SESSION}.html")
            page.get_by_role("link", name="open it in Perfetto").click()
            page.get_by_text("toy fp32 SME2 off").first.wait_for()
            browser.close()
        server.should_exit = True
        thread.join()
    assert {url for url in requested if not url.startswith((here, "data:", "blob:"))} == set()
    assert any(url.endswith(".json") for url in requested)
