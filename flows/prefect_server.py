"""A Prefect server for one sweep: it ends with the sweep, or the next sweep ends it if this one was killed."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import httpx
from prefect.server.api.server import SubprocessASGIServer

from devices.errors import FarmError
from tasks.files import write_complete

_PROGRAM = "prefect.server.api.server:create_app"
_LEAST_ROOM_BYTES = 16_000_000  # its new database alone takes six


def start_server(prefect_home: Path) -> None:
    """Start a server that every Prefect client of this process finds by itself, and that Prefect ends at its exit."""
    notes = prefect_home / "own-servers"
    end_orphans(notes)
    server = SubprocessASGIServer()
    if shutil.disk_usage(prefect_home).free < _LEAST_ROOM_BYTES:  # it would try for a minute and a half
        raise FarmError(f"no room on the disk of {prefect_home}; free some and start the sweep again")
    try:
        server.start()
    except (RuntimeError, httpx.HTTPError) as error:
        cause = str(error).splitlines()[0].rstrip(". ")
        raise FarmError(
            f"the Prefect server of this sweep did not start ({cause}); see `prefect server start`"
        ) from None
    if server.server_process:
        write_complete(notes / str(os.getpid()), str(server.server_process.pid).encode())


def stop_server() -> None:
    """End the server of this process, if it has one."""
    SubprocessASGIServer().stop()


def end_orphans(notes: Path) -> None:
    """End the servers of sweeps that were killed: they would keep memory and Prefect's database permanently.

    A note is named after the sweep's process and holds the server's; a server whose parent is another is an orphan.
    """
    for note in notes.glob("[0-9]*"):
        server = note.read_text(encoding="utf-8")
        words = ["ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", server]
        listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        parent, _, command = listed.strip().partition(" ")
        if _PROGRAM in command and parent == note.name:
            continue
        if _PROGRAM in command:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(server), signal.SIGTERM)
        note.unlink(missing_ok=True)
