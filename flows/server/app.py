"""The app of a server on SQLite: Prefect's, whose garbage is collected in a thread of its own.

With SQLite, Prefect's server must never collect garbage in its main thread. When a request fails because the database
is locked, its cursor is garbage, in a cycle with the error's traceback. Dropping a cursor waits for its connection; a
thread that waits for the database lock holds that for up to 60 s; and the transaction that has the lock needs the main
thread to end. With 30 devices the server stopped answering for a minute that way.
"""

import gc
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

PROGRAM = "flows.server.app:create_app"
"""How uvicorn finds `create_app`; it tells the farm's servers from other processes."""
_PAUSE_S = 1.0
_FULL_EVERY = 30


def create_app() -> "FastAPI":
    """Return Prefect's app; from now on this process collects garbage only in a thread for it."""
    from prefect.server.api.server import create_app

    app = create_app()
    gc.disable()
    gc.freeze()  # what exists now is never garbage
    threading.Thread(target=_collect, name="garbage", daemon=True).start()
    return app


def command(host: str, port: int, log_level: str) -> list[str]:
    """Return the command line of a server."""
    uvicorn = [sys.executable, "-m", "uvicorn", "--factory", PROGRAM]
    return [*uvicorn, "--host", host, "--port", str(port), "--log-level", log_level, "--lifespan", "on"]


def _collect() -> None:
    turn = 0
    while True:
        time.sleep(_PAUSE_S)
        turn += 1
        gc.collect(1 if turn % _FULL_EVERY else 2)
