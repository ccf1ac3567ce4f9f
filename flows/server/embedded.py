"""A Prefect server for one command: it ends with the process that started it, however that ends."""

import atexit
import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS,
    get_current_settings,
    temporary_settings,
)

from devices.errors import FarmError
from flows.progress import board
from flows.server.connection import stretched_s

APP = "prefect.server.api.server:create_app"
_MIN_FREE_BYTES = 16_000_000  # a new database of the server needs 6 MB
_DATABASE, _LOG = "prefect.db", "own-server.log"
_MAX_CHECKED_BYTES = 100_000_000  # checking takes less than a second
_POLL_S = 0.1
_REPORT_AFTER_S = 20.0
_ASK_S = 5.0
_STOP_S = 5.0
# What only deployments, schedules and automations need.
UNUSED_SERVICES = (
    "CANCELLATION_CLEANUP",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER",
    "TRIGGERS",
)


@contextlib.contextmanager
def embedded_server(prefect_home: Path) -> Iterator[None]:
    """Start a server that the Prefect clients of the block use, and that ends with this process.

    A damaged database is renamed, and the server starts with a new one: it only describes past runs, and all results
    are in the bundles. Raises FarmError if the disk is full or the server does not start.
    """
    if shutil.disk_usage(prefect_home).free < _MIN_FREE_BYTES:  # the server would retry for 90 seconds
        raise FarmError(f"{prefect_home}: the disk is full; free space and run the same command again")
    database = prefect_home / _DATABASE
    is_small = database.is_file() and database.stat().st_size <= _MAX_CHECKED_BYTES
    is_replaced = is_small and _set_aside_unusable_database(prefect_home)
    port, cause = _start(prefect_home)
    if cause and not is_replaced and _set_aside_unusable_database(prefect_home, cause):
        port, cause = _start(prefect_home)
    if cause:
        raise FarmError(
            f"the Prefect server of this sweep did not start: {cause}; its log is {(prefect_home / _LOG)}; "
            "fix the cause, or set PREFECT_API_URL to a running server"
        )
    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{port}/api"}):
        yield


def damaged_databases(prefect_home: Path) -> list[Path]:
    """Return the damaged databases that were replaced by new ones."""
    return sorted(prefect_home.glob(f"{_DATABASE}.damaged-*"))


def _set_aside_unusable_database(prefect_home: Path, cause: str = "") -> bool:
    """Rename the server's database, with its -wal and -shm files, if it is unusable; report it and return True then.

    It is unusable if it is damaged or, by `cause` (why the server did not start), of another version of Prefect. The
    server then creates a new one. A database elsewhere (PREFECT_API_DATABASE_CONNECTION_URL)
    is never touched.
    """
    database = prefect_home / _DATABASE
    url = get_current_settings().server.database.connection_url
    if not database.is_file() or str(database) not in (url.get_secret_value() if url else ""):
        return False
    # The database of another version of Prefect has a revision that this one does not have.
    damage = _database_damage(database) or (cause if "Can't locate revision" in cause else None)
    if damage is None:
        return False
    renamed = database.with_name(f"{_DATABASE}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            database.with_name(_DATABASE + suffix).rename(renamed.with_name(renamed.name + suffix))
    board.report(f"{database}: damaged ({damage}); kept as {renamed.name} and replaced by a new one; no result is lost")
    return True


def _database_damage(database: Path) -> str | None:
    """Return the first fault of a SQLite database; None if it has none, or cannot be checked, as it is locked."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            answer: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:  # locked, or not readable
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if answer == "ok" else answer.splitlines()[-1]


def _start(prefect_home: Path) -> tuple[int, str | None]:
    """Start the server and wait for it; return its port, and why it does not answer (None if it does)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    variables = {"PREFECT_UI_ENABLED": "0", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR"}
    variables |= {f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "0" for service in UNUSED_SERVICES}
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    with (prefect_home / _LOG).open("wb") as log:
        command = [sys.executable, "-P", "-m", "flows.server.embedded", str(os.getpid()), str(port)]
        process = subprocess.Popen(command, env=os.environ | settings | variables, stdout=log, stderr=log)
    atexit.register(_stop, process)
    return port, _wait_for_answer(process, f"http://127.0.0.1:{port}/api/health", prefect_home / _LOG)


def _wait_for_answer(process: "subprocess.Popen[bytes]", health: str, log: Path) -> str | None:
    """Wait until the server answers at the URL `health`; return None then, otherwise why it ended or was stopped."""
    begun, is_reported = time.monotonic(), False
    idle_s = PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.value()
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count() or 1} cores"
    while process.poll() is None and (left_s := begun + stretched_s(idle_s) - time.monotonic()) > 0:
        # Without certificates, which take longer to read than this process sleeps between two requests.
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(health, timeout=min(left_s, _ASK_S), verify=False).status_code == httpx.codes.OK:
                return None
        if not is_reported and time.monotonic() - begun > _REPORT_AFTER_S:
            board.report(f"the Prefect server has not started yet ({load}); waiting {left_s:.0f} s at most")
            is_reported = True
        time.sleep(_POLL_S)
    if process.poll() is not None:
        return _last_line(log)
    _stop(process)
    return f"{health} gave no answer for {time.monotonic() - begun:.0f} s ({load})"


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    """Return the last line of the server's log that states a cause."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    # The errors of SQLAlchemy end with a line of background reading.
    causes = [line for line in lines if line and "(Background on" not in line and "Application startup" not in line]
    return causes[-1].rpartition("Error: ")[2].rstrip(". ") if causes else "it printed nothing"


def _end_with(parent: int) -> None:
    """End this process as soon as `parent` is not its parent any more, for example after a SIGKILL."""
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)  # keeps what the server has not written yet
    time.sleep(_STOP_S)
    os._exit(0)  # the database is complete at every moment


def _serve(parent: int, port: int) -> None:
    import uvicorn

    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    uvicorn.run(APP, factory=True, host="127.0.0.1", port=port, log_level="error", lifespan="on")


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:]))
