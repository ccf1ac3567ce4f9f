"""A Prefect server for several sweeps, on SQLite: `etfarm server`."""

import contextlib
import errno
import os
import socket
import sys
from typing import NoReturn

from prefect.settings import PREFECT_SERVER_API_HOST, PREFECT_SERVER_API_PORT

from devices.errors import InputError
from flows.server.embedded import command
from flows.server.worker import LABS_POOL, POOL, create_pool, wait_for_server
from flows.terminal import show


def run_shared_server() -> NoReturn:
    """Become the server, with its user interface; raises InputError if its address cannot be used."""
    host, port = PREFECT_SERVER_API_HOST.value(), PREFECT_SERVER_API_PORT.value()
    _require_free(host, port)
    url = f"http://{host}:{port}"
    show(f"etfarm: Prefect server at {url}; set PREFECT_API_URL={url}/api for sweeps and workers", err=True)
    _create_pools_beside(f"{url}/api")
    os.environ["PREFECT_SERVER_LOGGING_LEVEL"] = "WARNING"
    os.execv(sys.executable, command(host, port, "warning"))


def _create_pools_beside(api: str) -> None:
    """Create the work pools as soon as the server answers, so that `prefect deploy` needs no worker before it.

    In a process that is no child of the server, which would not wait for its end.
    """
    if (child := os.fork()) != 0:
        os.waitpid(child, 0)
        return
    if os.fork() == 0:
        os.environ["PREFECT_API_URL"] = api
        with contextlib.suppress(Exception):  # a worker creates its pool, too
            wait_for_server()
            for pool in (POOL, LABS_POOL):
                create_pool(pool)
    os._exit(0)


def _require_free(host: str, port: int) -> None:
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        cause = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror or error})"
        way_on = "set PREFECT_SERVER_API_HOST or PREFECT_SERVER_API_PORT to another one, or end what listens there"
        raise InputError(f"the address {host}:{port} {cause}; {way_on}") from None
