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
# What is promised is 15 s on an idle machine; beside other tests starting Python alone takes several times as long.


@contextlib.contextmanager
def shared(farm: Farm) -> Iterator[Callable[[int, signal.Signals], None]]:
    """A Prefect server for the sweep; what sends that server a signal."""
    home = farm.folder / "home"
    home.mkdir()
    with running_prefect(lambda: home) as (api, server):
        farm.environment["PREFECT_API_URL"] = api
        try:
            yield lambda _, number: os.killpg(server.pid, number)
        finally:
            os.killpg(server.pid, signal.SIGKILL)


@contextlib.contextmanager
def own(farm: Farm) -> Iterator[Callable[[int, signal.Signals], None]]:
    """No server for the sweep; what sends a signal to the one that it starts."""
    del farm.environment["PREFECT_API_URL"]
    yield lambda sweep, number: os.kill(embedded_server_of(sweep), number)


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("server", "end"),
    [
        pytest.param(shared, signal.SIGKILL, id="shared killed"),
        pytest.param(shared, signal.SIGSTOP, id="shared silent"),
        pytest.param(own, signal.SIGKILL, id="own killed"),
    ],
)
@pytest.mark.fault
def test_a_server_that_is_gone_for_good_stops_no_measurement(
    farm: Farm,
    server: Callable[[Farm], contextlib.AbstractContextManager[Callable[[int, signal.Signals], None]]],
    end: signal.Signals,
) -> None:
    # given a sweep that reports to a server, in the middle of its second session
    farm.environment |= {"PREFECT_API_REQUEST_TIMEOUT": "3", "PREFECT_CLIENT_MAX_RETRIES": "2"}
    with server(farm) as send:
        process = farm.start_until_held(2, SMALL)
        # when the server is gone for good
        send(process.pid, end)
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


def refusing() -> str:
    return f"http://127.0.0.1:{free_port()}/api"


@pytest.mark.parametrize(
    ("server", "cause"),
    [
        pytest.param(silent, "no answer for ", id="silent"),
        pytest.param(lambda: nullcontext(refusing()), "Connection refused", id="refusing"),
        pytest.param(lambda: answering(503, "busy"), "it answered with HTTP status 503", id="HTTP 503"),
        pytest.param(lambda: answering(200, "<html>"), "the answer is not from a Prefect API", id="a web page"),
        pytest.param(lambda: nullcontext("http://prefect.invalid:4200/api"), "", id="unknown host"),
        pytest.param(lambda: nullcontext("127.0.0.1:4200"), "not a URL", id="no scheme"),
        pytest.param(lambda: nullcontext("http://127.0.0.1:99999/api"), "", id="impossible port"),
    ],
)
@pytest.mark.fault
def test_a_server_that_does_not_answer_is_one_sentence(
    server: Callable[[], contextlib.AbstractContextManager[str]], cause: str
) -> None:
    begun = time.monotonic()
    with server() as url, temporary_settings({PREFECT_API_URL: url}), pytest.raises(ServerGoneError) as error:
        check_server()
    waited_s = time.monotonic() - begun
    text = str(error.value)
    # the time that it states is the one that it waited
    assert all(abs(int(told_s) - waited_s) < 1.5 for told_s in re.findall(r"no answer for (\d+) s", text)), waited_s
    assert text.startswith(f"PREFECT_API_URL {url}: ")
    assert cause in text
    assert text.endswith(
        "; start that server or correct the address, or unset PREFECT_API_URL to let the sweep start a server"
    )


@pytest.mark.thorough
def test_a_server_whose_database_restarts_is_retried() -> None:
    with answering(200, '"3.8.8"', first=[500, 500]) as url, temporary_settings({PREFECT_API_URL: url}):
        check_server()


def test_a_server_that_refuses_the_password_is_one_sentence_with_the_variable_to_set() -> None:
    with (
        answering(401, "who?") as url,
        temporary_settings({PREFECT_API_URL: url}),
        pytest.raises(ServerGoneError) as error,
    ):
        check_server()
    assert str(error.value) == (
        f"PREFECT_API_URL {url}: it refused the name and password; "
        "set PREFECT_API_AUTH_STRING to the `user:password` of that server"
    )
