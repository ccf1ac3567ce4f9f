"""Run one export in its own process, which multiprocessing forks from a server that has imported torch (server.py)."""

import contextlib
import math
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, util
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tasks.export.process.child import SERVER_LOG, Request, export
from tasks.export.process.descendants import end_below
from tasks.export.process.memory import out_of_memory
from tasks.export.process.places import export_places
from tasks.store.files import remove_with_unfinished

_PRELOADED = ["tasks.export.process.server"]
_TRIES = 2
LONG_S = 10.0
"""A step that lasts this long is told again."""
Tell = Callable[[str, bool], None]
"""Takes what an export does: each step when it begins, and again, with True, when it has lasted `LONG_S`."""
_TOO_LONG = "export a part of the model, or fewer steps of a recurrent layer, which is exported step by step"
_SERVER_GONE = 255
"""What multiprocessing states as the exit code of a process whose server has ended."""
_LONGEST_TMPDIR_BYTES = 103 - len("/pymp-12345678/listener-12345678")
"""The address of a socket has 103 bytes on macOS and 107 on Linux (sun_path of unix(4) and unix(7))."""
_context = multiprocessing.get_context("forkserver")
# multiprocessing asks for the end of each process whenever it starts one, and two threads must not ask at once.
_processes = threading.Lock()
# Of the exports that run: what else is below the server was left by one that has ended.
_running: set[int] = set()


def run_export(request: Request, tell: Tell) -> dict[str, Any]:
    """Export in a separate process group, killed at the deadline; return {"folder": name} or {"error": cause}.

    Waits for a place. An export that needs more memory than its share is run again alone with all that is available.
    """
    with export_places.one() as limit_bytes:
        answer = _run(request, limit_bytes, tell)
    if "out_of_memory" in answer:
        with export_places.all() as whole_bytes:
            answer = _run(request, whole_bytes, tell) if whole_bytes > limit_bytes else answer
    return answer


def end_server() -> None:
    """End the server when its exports have ended; a later export starts another one.

    Otherwise it ends with this process.
    """
    with _processes:
        forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _run(request: Request, limit_bytes: int, tell: Tell) -> dict[str, Any]:
    """Run an export; start it again if the server was killed."""
    for _ in range(_TRIES):
        request.log.write_bytes(b"")
        answer = _run_once(request, limit_bytes, tell)
        if answer is not None:
            return answer
        end_server()  # it may be about to end, and would refuse the next process
    return {"error": f"the export server ended unexpectedly; its log is {_server_log(request)}"}


def _run_once(request: Request, limit_bytes: int, tell: Tell) -> dict[str, Any] | None:
    """Return the answer of the export's process, or how it ended without one; None if the server has ended."""
    receiver, sender = _context.Pipe(duplex=False)
    with receiver:
        try:
            with sender:
                process = _started(request, limit_bytes, sender)
        except (EOFError, ConnectionError):
            return None
        try:
            answer, has_ended = _followed(process, receiver, request.deadline_s, tell)
        finally:
            exit_code = _end(process)
    if answer is not None and "doing" not in answer:
        return answer
    step = f" while {answer['doing']}" if answer else ""
    if not has_ended:
        return {"error": f"the export was stopped after {request.deadline_s:g} s{step}; {_TOO_LONG}"}
    if exit_code == _SERVER_GONE:
        return None
    # Code in C++ that does not handle a failed allocation ends the process.
    log = request.log.read_bytes()
    if exit_code < 0 and (b"bad_alloc" in log or b"MemoryError" in log):
        return out_of_memory(limit_bytes)
    return {"error": _cause(exit_code) + step}


def _started(request: Request, limit_bytes: int, sender: "Connection[Any, Any]") -> ForkServerProcess:
    """Start the process of an export, and the server before the first one."""
    with _processes:
        process = _context.Process(target=export, args=(request, limit_bytes, dict(os.environ), sender))
        _context.set_forkserver_preload(_PRELOADED)
        _make_folder_of_sockets()
        with _environment_of_server(_server_log(request)):
            forkserver.ensure_running()
        process.start()
        assert process.pid is not None
        _running.add(process.pid)
    return process


def _make_folder_of_sockets() -> None:
    """Make multiprocessing's folder, in /tmp where a socket's address in TMPDIR would be too long."""
    settings = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if "tempdir" not in settings and len(os.fsencode(tempfile.gettempdir())) > _LONGEST_TMPDIR_BYTES:
        settings["tempdir"] = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
    remove_with_unfinished(Path(util.get_temp_dir()))  # multiprocessing's end may not run


def _followed(
    process: ForkServerProcess, receiver: "Connection[Any, Any]", deadline_s: float, tell: Tell
) -> tuple[dict[str, Any] | None, bool]:
    """Tell each step of an export; return what its process sent last, and whether it has ended before the deadline."""
    now = time.monotonic()
    end, long_at = now + deadline_s, math.inf
    last: dict[str, Any] | None = None
    watched: list[Connection[Any, Any] | int] = [receiver, process.sentinel]
    while now < end:
        ready = wait(watched, min(end, long_at) - now)
        now = time.monotonic()
        if receiver in ready:
            try:
                last = receiver.recv()
            except EOFError:  # only the process's end can follow
                watched.remove(receiver)
                continue
            long_at = now + LONG_S
            if last and "doing" in last:
                tell(last["doing"], False)
        elif process.sentinel in ready:
            return last, True
        elif now >= long_at:
            long_at = math.inf
            if last and "doing" in last:
                tell(last["doing"], True)
    return last, False


def _end(process: ForkServerProcess) -> int:
    """Kill an export's process and what it started; return its exit code."""
    assert process.pid is not None
    end_below(process.pid)  # here, because with a server that has ended nobody adopts what is left
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or has not yet made its group
        os.killpg(process.pid, signal.SIGKILL)
    with _processes:
        process.kill()
        process.join()
        exit_code = process.exitcode
        _running.discard(process.pid)
        process.close()
        if server := forkserver._forkserver._forkserver_pid:  # type: ignore[attr-defined]
            end_below(server, _running)
    assert exit_code is not None
    return exit_code


@contextlib.contextmanager
def _environment_of_server(log: Path) -> Iterator[None]:
    """Set for a moment what the server inherits: multiprocessing cannot be given an environment."""
    packages = [os.fspath(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")]
    added = {
        "PYTHONHASHSEED": "0",  # sets of names have the same order, and the same model gives the same bytes
        "PYTHONSAFEPATH": "1",  # the folder of the models must not hide the farm's packages
        "PYTHONPATH": os.pathsep.join(filter(None, packages)),
        SERVER_LOG: os.fspath(log),
    }
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _server_log(request: Request) -> Path:
    return request.log.with_name("server.log")


def _cause(exit_code: int) -> str:
    """Return how an export's process ended, as a sentence."""
    if exit_code == -signal.SIGKILL:
        return "the export process was killed (possibly out of memory)"
    if exit_code < 0:
        return f"the export process was killed by {signal.Signals(-exit_code).name}"
    return f"the export process exited with code {exit_code}"
