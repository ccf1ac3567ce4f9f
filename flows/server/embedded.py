"""A Prefect server for one sweep: it ends with the sweep; if the sweep is killed, the next one ends the server."""

import atexit
import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import httpx
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS, get_current_settings

from devices.errors import FarmError
from flows.progress import board
from flows.server.watch import own_server
from tasks.store.files import remove_unfinished, write_complete

_PROGRAM = "prefect.server.api.server:create_app"
_MIN_FREE_BYTES = 16_000_000  # a new database of the server needs 6 MB
_DATABASE = "prefect.db"
_CHECKED_BYTES = 100_000_000  # checking takes less than a second
_POLL_S = 0.1
_TELL_AFTER_S = 20.0
_ASK_S = 5.0
# What only deployments, schedules and automations need.
_UNUSED_SERVICES = (
    "CANCELLATION_CLEANUP",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER",
    "TRIGGERS",
)
_STOP_S = 3.0


def start_server(prefect_home: Path) -> None:
    """Start a server that all Prefect clients of this process use, and that ends with this process.

    If its database is damaged, it is kept under another name and the server starts with a new one: it only describes
    past runs; everything that was measured is in the bundles. Raises FarmError.
    """
    end_orphans(notes_of(prefect_home))
    if shutil.disk_usage(prefect_home).free < _MIN_FREE_BYTES:  # the server would retry for 90 seconds
        raise FarmError(f"{prefect_home}: the disk is full; free space and run the same command again")
    is_replaced = _replace_damaged_database(prefect_home) if _has_small_database(prefect_home) else False
    cause = _start(prefect_home)
    if cause and not is_replaced and _replace_damaged_database(prefect_home, cause):
        cause = _start(prefect_home)
    if cause:
        raise FarmError(
            f"the Prefect server of this sweep did not start: {cause}; its log is {_log_of(prefect_home)}; "
            "fix the cause, or set PREFECT_API_URL to a running server"
        )


def command(host: str, port: int, log_level: str) -> list[str]:
    """Return the command line of a server: Prefect's app, started as Prefect itself does."""
    uvicorn = [sys.executable, "-m", "uvicorn", "--factory", _PROGRAM]
    return [*uvicorn, "--host", host, "--port", str(port), "--log-level", log_level, "--lifespan", "on"]


def stretched_s(alone_s: float) -> float:
    """Return how long something may take now that takes `alone_s` at most on a machine that does nothing else."""
    return alone_s * max(1.0, os.getloadavg()[0] / _cores())


def stop_server() -> None:
    """End the server of this process, if it has one."""
    if not PREFECT_API_URL.value():
        own_server().stop()


def exit_at_once(code: int) -> NoReturn:
    """End this process although Prefect's threads still try, for minutes, to send to a server that is gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    stop_server()
    remove_unfinished()
    os._exit(code)


def _has_small_database(prefect_home: Path) -> bool:
    database = prefect_home / _DATABASE
    return database.is_file() and database.stat().st_size <= _CHECKED_BYTES


def _replace_damaged_database(prefect_home: Path, cause: str = "") -> bool:
    """Keep the server's database under another name if it is damaged, and print a sentence that names both.

    A database elsewhere (PREFECT_API_DATABASE_CONNECTION_URL) is never touched.
    """
    database = prefect_home / _DATABASE
    url = get_current_settings().server.database.connection_url
    if not database.is_file() or str(database) not in (url.get_secret_value() if url else ""):
        return False
    damage = _damage_of(database) or (cause if "Can't locate revision" in cause else None)
    if damage is None:
        return False
    kept = database.with_name(f"{_DATABASE}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            database.with_name(_DATABASE + suffix).rename(kept.with_name(kept.name + suffix))
    board.tell(f"{database}: damaged ({damage}); kept as {kept.name} and replaced by a new one; no result is lost")
    return True


def notes_of(prefect_home: Path) -> Path:
    """Return the folder that notes which server belongs to which sweep."""
    return prefect_home / "own-servers"


def kept_databases(prefect_home: Path) -> list[Path]:
    """Return the damaged databases that were replaced by new ones."""
    return sorted(prefect_home.glob(f"{_DATABASE}.damaged-*"))


def end_orphans(notes: Path) -> None:
    """End the servers of killed sweeps, which would keep memory and Prefect's database permanently."""
    for note, server in orphans(notes):
        if server is not None:
            _end(server)
        note.unlink(missing_ok=True)


def orphans(notes: Path) -> list[tuple[Path, int | None]]:
    """Return the notes of sweeps that have ended, with the process id of their server if it still runs.

    The name of a note is the process id of a sweep, its content that of the sweep's server; a server whose parent is
    another process is an orphan.
    """
    found: list[tuple[Path, int | None]] = []
    for note in sorted(notes.glob("[0-9]*")):
        server = note.read_text(encoding="utf-8")
        parent = _parent_of(server)
        if parent is None:
            found.append((note, None))
        elif parent != note.name:
            found.append((note, int(server)))
    return found


def _parent_of(server: str) -> str | None:
    """Return the process id of a server's parent; None if no server has this process id."""
    words = ["ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", server]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    parent, _, command = listed.strip().partition(" ")
    return parent if _PROGRAM in command else None


def _end(server: int) -> None:
    """End a server and wait for it: one that is still stopping keeps the database locked, for up to a minute.

    The database itself is complete at every moment.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, number)
        end = time.monotonic() + _STOP_S
        while _parent_of(str(server)) is not None:
            if time.monotonic() >= end:
                break
            time.sleep(_POLL_S)
        else:
            return


def _start(prefect_home: Path) -> str | None:
    """Start the server and wait until it answers; return why it does not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with _log_of(prefect_home).open("wb") as log:
        process = subprocess.Popen(command("127.0.0.1", port, "error"), env=_environment(), stdout=log, stderr=log)
    write_complete(notes_of(prefect_home) / str(os.getpid()), str(process.pid).encode())
    server = own_server()  # its import takes as long as the start of the process
    server.port, server.server_process = port, process
    server.running = True  # Prefect's clients would start another one
    atexit.register(server.stop)
    health, started, is_told = f"{server.api_url}/health", time.monotonic(), False
    alone_s = PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.value()
    while process.poll() is None and (left_s := started + stretched_s(alone_s) - time.monotonic()) > 0:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(health, timeout=min(left_s, _ASK_S)).status_code == httpx.codes.OK:
                return None
        if not is_told and time.monotonic() - started > _TELL_AFTER_S:
            board.tell(f"the Prefect server has not started yet ({_load()}); waiting {left_s:.0f} s at most")
            is_told = True
        time.sleep(_POLL_S)
    waited = f"{health} gave no answer for {time.monotonic() - started:.0f} s ({_load()})"
    cause = _last_line(_log_of(prefect_home)) if process.poll() is not None else waited
    server.stop()
    return cause


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {_cores()} cores"


def _cores() -> int:
    return os.cpu_count() or 1


def _environment() -> dict[str, str]:
    marks = {"PREFECT_UI_ENABLED": "0"}
    marks |= {f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "0" for service in _UNUSED_SERVICES}
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    return os.environ | marks | settings | {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR"}


def _log_of(prefect_home: Path) -> Path:
    return prefect_home / "own-server.log"


def _damage_of(database: Path) -> str | None:
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            answer: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:  # locked, or not readable
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if answer == "ok" else answer.splitlines()[-1]


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    # The errors of SQLAlchemy end with a line of background reading.
    told = [line for line in lines if line and "(Background on" not in line and "Application startup" not in line]
    return told[-1].rpartition("Error: ")[2].rstrip(". ") if told else "it printed nothing"
