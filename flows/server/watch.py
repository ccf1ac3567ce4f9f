"""Whether Prefect's server answers: checked before a sweep, watched during it; a sweep goes on without its server."""

import contextlib
import contextvars
import functools
import logging
import re
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx
from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_SSL_CERT_FILE,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)

from devices.errors import FarmError

if TYPE_CHECKING:
    from prefect.server.api.server import SubprocessASGIServer

_T = TypeVar("_T")
_ANSWER_S = 8.0
# A server that is restarted is back within this time; until then Prefect's clients repeat what they sent.
_LOST_AFTER_S = 30.0
_PAUSE_S = 2.0
_RESTARTED_S = 4.0
_STATUS = "it answered with HTTP status"
_SERVER_ERROR = f"{_STATUS} 5"
_REFUSED = "it refused the name and password"
_UNTRUSTED = "its TLS certificate is not trusted"
_NO_FILE = "PREFECT_API_SSL_CERT_FILE is not a file"
_START = "start that server or correct the address, or unset PREFECT_API_URL to let the sweep start a server"
_REMEDIES = {
    _REFUSED: "set PREFECT_API_AUTH_STRING to the `user:password` of that server",
    _UNTRUSTED: "set PREFECT_API_SSL_CERT_FILE to the file of its CA, or use the certificate's name as the address",
    _NO_FILE: "set it to the file of the server's CA, or unset it",
}
_log = logging.getLogger(__name__)


class ServerGoneError(FarmError):
    """The Prefect server does not answer; the text is one sentence."""


class ServerWatch:
    """Asks the server of this process every few seconds whether it is well.

    After 30 seconds without an answer it is regarded as lost, until it answers again: nothing is sent to it, because
    Prefect's clients would repeat each request for minutes.
    """

    def __init__(self) -> None:
        self._is_lost = threading.Event()
        self._stop = threading.Event()
        self._stop.set()
        self._answered_at = datetime.now()
        self._since: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the server is regarded as gone."""
        return self._is_lost.is_set()

    @property
    def note(self) -> str | None:
        """What Prefect's UI lacks, in one sentence; None if the server always answered."""
        if self._since is None:
            return None
        again = "" if self.is_lost else " for a while"
        return (
            f"Prefect's server at {_address()} stopped answering at {self._since}{again}: "
            "its UI lacks what was measured since; the report is complete"
        )

    def ask(self) -> bool:
        """Return whether the server answers now; if not, it is lost. One that is not watched counts as answering."""
        if not self._stop.is_set() and not self.is_lost:
            with client_without_retries() as client:
                if _cause_of_no_answer(client) is not None:
                    self._lose()
        return not self.is_lost

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the server while the block runs."""
        self._since = None
        self._is_lost.clear()
        self._stop.clear()
        threading.Thread(target=self._watch, daemon=True).start()
        # Python would report each line that Prefect's handler cannot send.
        logging.raiseExceptions = False
        try:
            yield
        finally:
            self._stop.set()
            self._is_lost.clear()

    def _watch(self) -> None:
        self._answered_at, answered = datetime.now(), time.monotonic()
        with client_without_retries() as client:  # making one takes longer than asking
            while not self._stop.wait(_PAUSE_S):
                if _cause_of_no_answer(client) is None:
                    self._answered_at, answered = datetime.now(), time.monotonic()
                    self._is_lost.clear()
                elif not self.is_lost and (time.monotonic() - answered > _LOST_AFTER_S or _has_own_server_ended()):
                    self._lose()

    def _lose(self) -> None:
        self._since = self._since or f"{self._answered_at:%H:%M:%S}"
        self._is_lost.set()
        _log.warning("Prefect's server at %s is lost; measuring goes on without it", _address())


watch = ServerWatch()


def own_server() -> "SubprocessASGIServer":
    """Return what Prefect's clients of this process use without PREFECT_API_URL; its import takes two seconds."""
    from prefect.server.api.server import SubprocessASGIServer

    return SubprocessASGIServer()


def check_server() -> None:
    """Raise ServerGoneError within 8 seconds unless the server at PREFECT_API_URL answers as one of Prefect."""
    causes: list[str | None] = []
    # In a thread, because neither the look-up of a name nor an answer that trickles in has a time limit.
    settings = contextvars.copy_context()
    thread = threading.Thread(target=lambda: causes.append(settings.run(_lasting_cause)), daemon=True)
    begun = time.monotonic()
    thread.start()
    thread.join(_ANSWER_S)
    cause = causes[0] if causes else _no_answer_since(begun)
    if cause is not None:
        remedy = next((remedy for known, remedy in _REMEDIES.items() if cause.startswith(known)), _START)
        raise ServerGoneError(f"PREFECT_API_URL {PREFECT_API_URL.value()}: {cause}; {remedy}")


@contextlib.contextmanager
def client_without_retries() -> Iterator[SyncPrefectClient]:
    """Yield a client whose requests, like all others in the block, fail in seconds if the server does not answer."""
    with (
        temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: _ANSWER_S - 1}),
        get_client(sync_client=True) as client,
    ):
        yield client


def run_flow(shown: Flow[..., _T], **parameters: Any) -> _T:
    """Call a flow and return what its function returns, also if the server is lost while the function runs.

    Raises what the function raises, and ServerGoneError if the server is lost before the function starts.
    """
    ended: list[_T] = []
    raised: list[BaseException] = []
    with contextlib.ExitStack() as until_end:

        @functools.wraps(shown.fn)
        def kept(*positional: Any, **named: Any) -> _T:
            try:
                ended.append(shown.fn(*positional, **named))
            except BaseException as error:
                raised.append(error)
                raise
            finally:
                if not watch.ask():  # Prefect would repeat for minutes what it sends after the end of the function
                    until_end.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}))
            return ended[0]

        called: Flow[..., _T] = Flow(
            kept,
            name=shown.name,
            flow_run_name=shown.flow_run_name,
            task_runner=shown.task_runner,
            validate_parameters=shown.should_validate_parameters,
        )
        try:
            message = cast(State[_T], called(**parameters, return_state=True)).message
        except Exception as error:
            if not (ended or raised) and not isinstance(error, httpx.HTTPError | RuntimeError):
                raise
            message = _first_line(error)
    if raised:
        raise raised[0]
    if ended:
        return ended[0]
    raise ServerGoneError(f"Prefect's server at {_address()} did not start the flow `{shown.name}`: {message}")


def _lasting_cause() -> str | None:
    """Return why the server is not usable, or None; one whose database is restarted is asked again."""
    end = time.monotonic() + _RESTARTED_S
    while True:
        cause = _cause_of_no_answer()
        if cause is None or not cause.startswith(_SERVER_ERROR) or time.monotonic() >= end:
            return cause
        time.sleep(1)


def _cause_of_no_answer(watching: SyncPrefectClient | None = None) -> str | None:
    """Return why the server is not usable, or None; to the client of the watch every answer is a good one."""
    any_status, begun = watching is not None, time.monotonic()
    try:
        with contextlib.nullcontext(watching) if watching else client_without_retries() as client:
            answer = client.request("GET", "/admin/version")  # unlike /health, it requires name and password
            if any_status or isinstance(answer.json(), str):
                return None
            return "the answer is not from a Prefect API; its address ends with /api"
    except PrefectHTTPStatusError as error:
        status = error.response.status_code
        if any_status:
            return None
        return _REFUSED if status == httpx.codes.UNAUTHORIZED else f"{_STATUS} {status}"
    except httpx.TimeoutException:
        return _no_answer_since(begun)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        return f"not a URL ({_first_line(error)})"
    except (httpx.HTTPError, OSError) as error:
        return _tls_cause(error) or _first_line(error)
    except ValueError:
        return "the answer is not from a Prefect API; its address ends with /api"


def _no_answer_since(begun: float) -> str:
    return f"no answer for {time.monotonic() - begun:.0f} s"


def _tls_cause(error: Exception) -> str | None:
    """Return what is wrong with the server's certificate or with the file of its CA, if that is the error."""
    path = PREFECT_API_SSL_CERT_FILE.value()
    if path and not Path(path).is_file():
        return f"{_NO_FILE} ({path})"
    found = re.search(r"certificate verify failed: (.*?)\.?( \(_ssl|$)", str(error))
    return f"{_UNTRUSTED} ({found[1]})" if found else None


def _address() -> str:
    return PREFECT_API_URL.value() or own_server().api_url


def _has_own_server_ended() -> bool:
    server = None if PREFECT_API_URL.value() else own_server().server_process
    return server is not None and server.poll() is not None


def _first_line(error: Exception) -> str:
    text = (str(error).splitlines() or [""])[0].strip().rstrip(".")
    return text.rpartition("] ")[2] or type(error).__name__
