"""A Prefect server that is gone, silent or broken: before a sweep, one sentence; during it, measuring goes on."""

import contextlib
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.server.connection import ServerGoneError, check_server
from tests.fixtures.farm import Farm, sweep_of
from tests.fixtures.http_server import answering
from tests.fixtures.prefect_server import embedded_server_of, running_prefect
from tests.fixtures.waiting import SCALE
from tests.lab.loopback import free_port

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]
pytest.importorskip("executorch", reason="exports and the runner need the export extra")
SMALL = sweep_of("linear", sessions=3)


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("is_own", "end"),
    [(False, signal.SIGKILL), (False, signal.SIGSTOP), (True, signal.SIGKILL)],
    ids=["shared killed", "shared silent", "own killed"],
)
@pytest.mark.fault
def test_a_server_that_is_gone_for_good_stops_no_measurement(farm: Farm, is_own: bool, end: signal.Signals) -> None:
    # given a sweep that reports to a shared server or to its own, in the middle of its second session
    farm.environment |= {"PREFECT_API_REQUEST_TIMEOUT": "3", "PREFECT_CLIENT_MAX_RETRIES": "2"}
    del farm.environment["PREFECT_API_URL"]
    with contextlib.ExitStack() as stack:
        if not is_own:
            home = farm.folder / "home"
            home.mkdir()
            farm.environment["PREFECT_API_URL"], server = stack.enter_context(running_prefect(lambda: home))
            stack.callback(os.killpg, server.pid, signal.SIGKILL)
        process = farm.start_until_held(2, SMALL)
        # when the server is gone for good
        if is_own:
            os.kill(embedded_server_of(process.pid), end)
        else:
            os.killpg(server.pid, end)
        farm.go_on()
        out, err = process.communicate(timeout=240 * SCALE)
    # then every session is measured and loaded, and one sentence tells why the end of the sweep is not shown
    assert (process.returncode, out) == (2, ""), out + err
    assert re.search(r"^etfarm: Prefect's server does not answer \(.*; no result is lost: run the same", err, re.M)
    assert "Traceback" not in err
    assert farm.ask("SELECT count(*) AS n FROM session_latency") == [{"n": 3}]
    # and the same command prints the results
    farm.environment.pop("PREFECT_API_URL", None)
    assert "sessions: 4 already done" in farm.sweep(SMALL).stdout


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/api"


@pytest.mark.parametrize(
    ("server", "cause"),
    [
        pytest.param(silent, "no answer for ", id="silent"),
        pytest.param(lambda: nullcontext(f"http://127.0.0.1:{free_port()}/api"), "Connection refused", id="refusing"),
        pytest.param(lambda: answering(503, "busy"), "it answered with HTTP status 503", id="HTTP 503"),
        pytest.param(lambda: answering(200, "<html>"), "the answer is not from a Prefect API", id="a web page"),
        pytest.param(
            lambda: answering(401, "who?"), "refused the name and password; set PREFECT_API_AUTH_STRING", id="401"
        ),
        pytest.param(lambda: nullcontext("127.0.0.1:4200"), "not a URL", id="no scheme"),
    ],
)
@pytest.mark.fault
def test_a_server_that_does_not_answer_is_one_sentence(
    server: Callable[[], contextlib.AbstractContextManager[str]], cause: str
) -> None:
    begun = time.monotonic()
    with server() as url, temporary_settings({PREFECT_API_URL: url}), pytest.raises(ServerGoneError) as error:
        check_server()
    waited_s, text = time.monotonic() - begun, str(error.value)
    # the time that it states is the one that it waited
    stated_s = [int(found) for found in re.findall(r"no answer for (\d+) s", text)]
    assert all(-1 <= waited_s - each < 1.5 * SCALE for each in stated_s), waited_s
    assert text.startswith(f"PREFECT_API_URL {url}: ")
    assert cause in text


@pytest.mark.thorough
def test_a_server_whose_database_restarts_is_retried() -> None:
    with answering(200, '"3.8.8"', first=[500, 500]) as url, temporary_settings({PREFECT_API_URL: url}):
        check_server()
