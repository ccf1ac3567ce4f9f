"""The connection to a Prefect server: whether it answers and why not, and how far its clock differs from this one."""

import contextlib
import contextvars
import os
import re
import threading
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_SSL_CERT_FILE,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)

from devices.errors import FarmError, InputError

_ANSWER_S = 8.0
_RESTARTED_S = 4.0
_STARTS_S = 60.0
_MAX_CLOCK_DIFFERENCE_S = 120.0
_STATUS = "it answered with HTTP status"
_SERVER_ERROR = f"{_STATUS} 5"
_REFUSED = "it refused the name and password"
_UNTRUSTED = "its TLS certificate is not trusted"
_NO_FILE = "PREFECT_API_SSL_CERT_FILE is not a file"
_NOT_PREFECT = "the answer is not from a Prefect API; its address ends with /api"
_START = "start that server or correct the address, or unset PREFECT_API_URL to let the sweep start a server"
_REMEDIES = {
    _REFUSED: "set PREFECT_API_AUTH_STRING to the `user:password` of that server",
    _UNTRUSTED: "set PREFECT_API_SSL_CERT_FILE to the file of its CA, or use the certificate's name as the address",
    _NO_FILE: "set it to the file of the server's CA, or unset it",
}


class ServerGoneError(FarmError):
    """The Prefect server does not answer; the text is one sentence."""


def require_server() -> None:
    """Raise InputError without PREFECT_API_URL, ServerGoneError if the server cannot be used."""
    if "PREFECT_API_URL" not in os.environ:
        raise InputError("PREFECT_API_URL is not set; set it to the server's address, as http://127.0.0.1:4200/api")
    check_server()


def wait_for_server() -> None:
    """Call `require_server` until the server can be used, for a minute, or longer on a busy machine."""
    begun = time.monotonic()
    while True:
        try:
            return require_server()
        except ServerGoneError:
            if time.monotonic() - begun >= stretched_s(_STARTS_S):
                raise
        time.sleep(1)


def stretched_s(idle_s: float) -> float:
    """Return the time limit `idle_s` of an idle machine, multiplied by the present load per core if that is above 1."""
    return idle_s * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def check_server() -> None:
    """Raise ServerGoneError within 8 seconds unless the server at PREFECT_API_URL answers as a Prefect server."""
    if (cause := cause_of_no_answer()) is not None:
        remedy = next((remedy for cause_start, remedy in _REMEDIES.items() if cause.startswith(cause_start)), _START)
        raise ServerGoneError(f"PREFECT_API_URL {PREFECT_API_URL.value()}: {cause}; {remedy}")


def cause_of_no_answer() -> str | None:
    """Return within 8 seconds why the server of Prefect's clients here is not usable; None if it is."""
    causes: list[str | None] = []
    # In a thread, because neither the look-up of a name nor an answer that trickles in has a time limit.
    settings = contextvars.copy_context()
    thread = threading.Thread(target=lambda: causes.append(settings.run(_lasting_cause)), daemon=True)
    begun = time.monotonic()
    thread.start()
    thread.join(_ANSWER_S)
    return causes[0] if causes else _no_answer_since(begun)


@contextlib.contextmanager
def client_without_retries() -> Iterator[SyncPrefectClient]:
    """Yield a client without retries and with a limit of 7 s per request; both hold for all clients in the block."""
    with (
        temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: _ANSWER_S - 1}),
        get_client(sync_client=True) as client,
    ):
        yield client


def clock_difference_s() -> float | None:
    """Return how many seconds this machine's clock is ahead of the server's, to a second; None if no server answers."""
    if "PREFECT_API_URL" not in os.environ:
        return None  # an embedded server is on this machine
    try:
        with client_without_retries() as client:
            asked = time.time()
            date = client.request("GET", "/admin/version").headers["date"]
            return (asked + time.time()) / 2 - parsedate_to_datetime(date).timestamp()  # half way: it may be slow
    except (httpx.HTTPError, OSError):  # or the file of the CA cannot be read
        return None


def clock_warning(ahead_s: float | None) -> str | None:
    """Return a warning if the clocks are more than two minutes apart; None if not, or if that is unknown."""
    if ahead_s is None or abs(ahead_s) <= _MAX_CLOCK_DIFFERENCE_S:
        return None
    apart = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
    return f"this machine's clock is {apart} the Prefect server's; set the one that is wrong, for example with NTP"


def _lasting_cause() -> str | None:
    """Return why the server is not usable, or None; after HTTP status 5xx (a database restarts), ask again for 4 s."""
    end = time.monotonic() + _RESTARTED_S
    while True:
        cause = _present_cause()
        if cause is None or not cause.startswith(_SERVER_ERROR) or time.monotonic() >= end:
            return cause
        time.sleep(1)


def _present_cause() -> str | None:
    """Return why the server is not usable at this moment, or None; the address may be that of another program."""
    begun = time.monotonic()
    try:
        with client_without_retries() as client:
            answer = client.request("GET", "/admin/version")  # unlike /health, it requires name and password
            return None if isinstance(answer.json(), str) else _NOT_PREFECT
    except PrefectHTTPStatusError as error:
        status = error.response.status_code
        return _REFUSED if status == httpx.codes.UNAUTHORIZED else f"{_STATUS} {status}"
    except httpx.TimeoutException:
        return _no_answer_since(begun)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        return f"not a URL ({_first_line(error)})"
    except (httpx.HTTPError, OSError) as error:
        path = PREFECT_API_SSL_CERT_FILE.value()
        if path and not Path(path).is_file():
            return f"{_NO_FILE} ({path})"
        match = re.search(r"certificate verify failed: (.*?)\.?( \(_ssl|$)", str(error))
        return f"{_UNTRUSTED} ({match[1]})" if match else _first_line(error)
    except ValueError:
        return _NOT_PREFECT


def _no_answer_since(begun: float) -> str:
    return f"no answer for {time.monotonic() - begun:.0f} s"


def _first_line(error: Exception) -> str:
    """Return the first line of an error's text, without a prefix such as `[Errno 111] `; its type without a text."""
    text = (str(error).splitlines() or [""])[0].strip().rstrip(".")
    return text.rpartition("] ")[2] or type(error).__name__
