"""A Prefect server that several sweeps share (`etfarm server`), its work pools, and workers that stop cleanly."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from types import FrameType
from typing import NoReturn

import httpx
from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_API_HOST, PREFECT_SERVER_API_PORT, temporary_settings

from devices.errors import InputError
from devices.settings import settings_as_variables
from flows.server.connection import client_without_retries, wait_for_server
from flows.server.embedded import APP
from flows.server.settings import HEARTBEAT, RESTARTS
from flows.terminal import show

POOL = "etfarm"
"""The work pool of sweeps and all other deployments."""
LABS_POOL = "etfarm-labs"
"""The work pool of labs, with a work queue for each."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MAX_STOP_S = 60.0
_POLL_S = 0.1


def run_shared_server() -> NoReturn:
    """Replace this process by the server with its user interface; raises InputError if its address cannot be used."""
    host, port = PREFECT_SERVER_API_HOST.value(), PREFECT_SERVER_API_PORT.value()
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        cause = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror or error})"
        remedy = "set PREFECT_SERVER_API_HOST or PREFECT_SERVER_API_PORT to another one, or end what listens there"
        raise InputError(f"the address {host}:{port} {cause}; {remedy}") from None
    url = f"http://{host}:{port}"
    show(f"etfarm: Prefect server at {url}; set PREFECT_API_URL={url}/api for sweeps and workers", err=True)
    _create_pools_beside(f"{url}/api")
    os.environ["PREFECT_SERVER_LOGGING_LEVEL"] = "WARNING"
    words = [sys.executable, "-m", "uvicorn", "--factory", APP, "--host", host, "--port", str(port)]
    os.execv(sys.executable, [*words, "--log-level", "warning", "--lifespan", "on"])


def _create_pools_beside(api: str) -> None:
    """Create the work pools as soon as the server answers, so that `prefect deploy` needs no worker before it.

    This needs a process that is not a child of the server, because the server would not wait for its end.
    """
    if (child := os.fork()) != 0:
        os.waitpid(child, 0)
        return
    if os.fork() == 0:
        os.environ["PREFECT_API_URL"] = api  # Prefect has read its settings already, in which there is no address
        # A worker creates its pool, too.
        with contextlib.suppress(Exception), temporary_settings({PREFECT_API_URL: api}):
            wait_for_server()
            for pool in (POOL, LABS_POOL):
                create_pool(pool)
    os._exit(0)


def create_pool(name: str) -> None:
    """Create a work pool of processes at the server, unless it exists."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    pool = WorkPoolCreate(name=name, type=ProcessWorker.type, base_job_template=template)
    with get_client(sync_client=True) as client, contextlib.suppress(ObjectAlreadyExists):
        client.create_work_pool(pool)


def run_worker(pool: str, queue: str = "default") -> int:
    """Run a worker for a work queue of a pool until it ends or this process gets a signal; return its exit code.

    Prefect's worker ends its flow runs with SIGKILL when it is stopped: devices would stay leased, their jobs would go
    on, and the runs would stay `Running`. So the sweeps are ended first, then the worker.
    Raises InputError without PREFECT_API_URL, ServerGoneError if the server cannot be used.
    """
    wait_for_server()
    create_pool(pool)  # before the worker is up: `prefect deploy` may be next
    for setting in (HEARTBEAT, RESTARTS):
        os.environ.setdefault(*setting)
    os.environ.update(settings_as_variables())  # the process of a run may start in a folder without etfarm.yaml
    words = ["worker", "start", "--pool", pool, "--type", "process", "--work-queue", queue]
    words += ["--install-policy", "never"]
    command = [sys.executable, "-m", "prefect", *words, "--name", f"{socket.gethostname()} {queue}"]
    # Prefect's worker ends by SIGINT, which it must not inherit as ignored from a script that started us with `&`.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # In another session, or Ctrl-C would also reach it directly.
    worker = subprocess.Popen(command, start_new_session=True)

    def stop(_number: int, _frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        _end_sweeps(worker)
        worker.terminate()

    for number in _SIGNALS:
        signal.signal(number, stop)
    return worker.wait()


def online_labs() -> set[str] | None:
    """Return the sites of labs whose workers are online; None if no server can be asked."""
    if "PREFECT_API_URL" not in os.environ:
        return None
    try:
        with client_without_retries() as client:
            workers = client.read_workers_for_work_pool(LABS_POOL)
    except httpx.HTTPStatusError as error:
        return set() if error.response.status_code == httpx.codes.NOT_FOUND else None
    except (httpx.HTTPError, OSError, ValueError):
        return None
    # `run_worker` names a worker by its host and its queue, which is the site.
    return {worker.name.rpartition(" ")[2] for worker in workers if worker.status == "ONLINE"}


def _end_sweeps(worker: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM to each child process of the worker, and wait until they end, at most 60 s.

    Each gets it once, because a second one ends a sweep at once. The worker may start another flow run meanwhile.
    """
    signaled: set[int] = set()
    end = time.monotonic() + _MAX_STOP_S
    while time.monotonic() < end:
        command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        children = {int(pid) for pid, parent, state in rows if int(parent) == worker.pid and not state.startswith("Z")}
        if not children:
            return
        for child in children - signaled:
            os.kill(child, signal.SIGTERM)  # its worker has not waited for it: the id cannot belong to another process
        signaled |= children
        time.sleep(_POLL_S)
