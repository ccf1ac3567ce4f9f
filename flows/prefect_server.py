"""A Prefect server for one sweep: it ends with the sweep; if the sweep is killed, the next one ends the server."""

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
_MIN_FREE_BYTES = 16_000_000  # a new database of the server needs 6 MB


def start_server(prefect_home: Path) -> None:
    """Start a server that all Prefect clients of this process use, and that ends with this process."""
    notes = prefect_home / "own-servers"
    end_orphans(notes)
    server = SubprocessASGIServer()
    if shutil.disk_usage(prefect_home).free < _MIN_FREE_BYTES:  # the server would retry for 90 seconds
        raise FarmError(f"{prefect_home}: the disk is full; free space and run the same command again")
    try:
        server.start()
    except (RuntimeError, httpx.HTTPError) as error:
        cause = str(error).splitlines()[0].rstrip(". ")
        raise FarmError(
            f"the Prefect server of this sweep did not start ({cause}); run `prefect server start` to see why"
        ) from None
    if server.server_process:
        write_complete(notes / str(os.getpid()), str(server.server_process.pid).encode())


def stop_server() -> None:
    """End the server of this process, if it has one."""
    SubprocessASGIServer().stop()


def end_orphans(notes: Path) -> None:
    """End the servers of killed sweeps, which would keep memory and Prefect's database permanently.

    The name of a note is the process id of a sweep, its content that of the sweep's server; a server whose parent is
    another process is an orphan.
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
