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
from typing import Any, Protocol

from tasks.export.entry import ExportRequest
from tasks.export.process.child import SERVER_LOG, ExportOutcome, export, out_of_memory
from tasks.export.process.environments import stated_environment
from tasks.export.process.other_version import ExportProcess
from tasks.export.process.sandbox import export_slots, kill_descendants
from tasks.store.files import register_unfinished

_SERVER_LOG_NAME = "server.log"
_PRELOADED = ["tasks.export.process.server"]
_TRIES = 2  # of an export whose server has ended
LONG_S = 10.0
OnStep = Callable[[str, bool], None]
"""Receives (step, is_long): each step when it begins, and again with True, and with the time that the export has taken
of its limit, when the step has lasted `LONG_S`, twice that, four times that and so on."""
_TOO_LONG = (
    "raise the limit (`export_deadline_s` in the sweep file, --deadline of a command), or export a part of the model, "
    "or fewer steps of a recurrent layer, which is exported step by step"
)
_Followed = tuple[str | ExportOutcome | None, bool]
"""The last message of a process, and whether it ended in time."""
_MAX_TMPDIR_BYTES = 103 - len("/pymp-12345678/listener-12345678")
"""A socket's address has at most 103 bytes on macOS and 107 on Linux (sun_path of unix(4) and unix(7))."""
_context = multiprocessing.get_context("forkserver")
_server_lock = threading.Lock()
"""Held while the server or one of its processes is started or ended; guards `_running`."""
_running: set[int] = set()
"""Process ids of the running exports. Everything else below the server was left by an export that has ended."""


class _Receiver(Protocol):
    """A connection, or what can be waited for like one."""

    def fileno(self) -> int: ...

    def recv(self) -> Any: ...


def run_export(request: ExportRequest, log: Path, on_step: OnStep) -> ExportOutcome:
    """Export in a process that is killed at the deadline; alone, again, if its share of the memory is too small."""
    with export_slots.one() as limit_bytes:
        outcome = _run_with_retry(request, log, limit_bytes, on_step)
    if outcome.is_out_of_memory:
        with export_slots.all() as total_bytes:
            outcome = _run_with_retry(request, log, total_bytes, on_step) if total_bytes > limit_bytes else outcome
    return outcome


def start_server(logs: Path) -> None:
    """Start the server in the background: torch is imported meanwhile. `logs` is the folder of exports' logs."""
    logs.mkdir(parents=True, exist_ok=True)
    with _server_lock:
        _ensure_server(logs / _SERVER_LOG_NAME)


def end_server() -> None:
    """Wait for the server's exports and end it; otherwise it ends with this process. A later export starts another."""
    with _server_lock:
        forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _run_with_retry(request: ExportRequest, log: Path, limit_bytes: int, on_step: OnStep) -> ExportOutcome:
    """Run an export, and run it again if its server ends before it does."""
    for _ in range(_TRIES):
        log.write_bytes(b"")
        outcome = _run_once(request, log, limit_bytes, on_step)
        if outcome is not None:
            return outcome
        end_server()  # it may be about to end, and would refuse the next process
    return ExportOutcome(error="the export server ended unexpectedly", log=log.with_name(_SERVER_LOG_NAME))


def _run_once(request: ExportRequest, log: Path, limit_bytes: int, on_step: OnStep) -> ExportOutcome | None:
    """Return the outcome that the process sent, or one that describes its end; None if the server has ended."""
    if environment := stated_environment(request.entry.name, request.exports_dir):
        with ExportProcess(environment, request, log, limit_bytes) as other:
            followed = follow(other.sentinel, other.answers, request.deadline_s, on_step)
        return _outcome(request, log, limit_bytes, followed, other.exit_code)
    receiver, sender = _context.Pipe(duplex=False)
    with receiver:
        try:
            with sender:
                process = _start(request, log, limit_bytes, sender)
        except (EOFError, ConnectionError):
            return None
        try:
            followed = follow(process.sentinel, receiver, request.deadline_s, on_step)
        finally:
            exit_code = _end(process)
    return _outcome(request, log, limit_bytes, followed, exit_code)


def _outcome(
    request: ExportRequest, log: Path, limit_bytes: int, followed: _Followed, exit_code: int | None
) -> ExportOutcome | None:
    """Return the outcome that a process sent, or one that describes its end; None if it has no exit code."""
    last_message, has_ended = followed
    if isinstance(last_message, ExportOutcome):
        return last_message
    step = f" while {last_message}" if last_message else ""
    if not has_ended:
        return ExportOutcome(error=f"the export was stopped after {request.deadline_s:g} s{step}; {_TOO_LONG}")
    if exit_code is None:
        return None
    # Code in C++ that does not handle a failed allocation ends the process.
    printed = log.read_bytes()
    if exit_code < 0 and (b"bad_alloc" in printed or b"MemoryError" in printed):
        return out_of_memory(limit_bytes)
    return ExportOutcome(error=f"the export process {_describe_exit(exit_code)}{step}")


def _describe_exit(exit_code: int) -> str:
    """Return how a process ended; a negative exit code is the number of the signal that killed it."""
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    if exit_code == -signal.SIGKILL:
        return "was killed (possibly out of memory)"
    names = {number.value: number.name for number in signal.Signals}  # most real-time signals have no name
    return f"was killed by {names.get(-exit_code, f'signal {-exit_code}')}"


def _start(request: ExportRequest, log: Path, limit_bytes: int, sender: "Connection[Any, Any]") -> ForkServerProcess:
    """Start the process of an export, and first the server if none runs."""
    with _server_lock:
        process = _context.Process(target=export, args=(request, log, limit_bytes, dict(os.environ), sender))
        _ensure_server(log.with_name(_SERVER_LOG_NAME))
        process.start()
        # Only `_end` may read the exit code: whatever starts a process later polls those that multiprocessing lists.
        multiprocessing.process._children.discard(process)  # type: ignore[attr-defined]
        assert process.pid is not None
        _running.add(process.pid)
    return process


def _ensure_server(log: Path) -> None:
    """Start the server unless it runs; `_server_lock` is held."""
    _context.set_forkserver_preload(_PRELOADED)
    # multiprocessing's folder goes to /tmp if a socket's address in TMPDIR would be too long.
    settings = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if "tempdir" not in settings and len(os.fsencode(tempfile.gettempdir())) > _MAX_TMPDIR_BYTES:
        settings["tempdir"] = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
    register_unfinished(Path(util.get_temp_dir()))  # multiprocessing's own cleanup may not run
    with _server_environment(log):
        forkserver.ensure_running()


def follow(sentinel: int, receiver: _Receiver, deadline_s: float, on_step: OnStep) -> _Followed:
    """Report each step of a process; return its last message, and whether it ended (`sentinel`) in time."""
    start = now = time.monotonic()
    end, long_at, step_at = start + deadline_s, math.inf, start
    last_message: str | ExportOutcome | None = None
    watched: list[Any] = [receiver, sentinel]
    while now < end:
        ready = wait(watched, min(end, long_at) - now)
        now = time.monotonic()
        if receiver in ready:
            try:
                last_message = receiver.recv()
            except EOFError:  # only the process's end can follow
                watched.remove(receiver)
                continue
            long_at, step_at = now + LONG_S, now
            if isinstance(last_message, str):
                on_step(last_message, False)
        elif sentinel in ready:
            return last_message, True
        elif now >= long_at:
            long_at = now + (now - step_at)
            if isinstance(last_message, str):
                on_step(f"{last_message}, {now - start:.0f} s of at most {deadline_s:g} s", True)
    return last_message, False


def _end(process: ForkServerProcess) -> int | None:
    """Kill an export's process and everything that it started; return its exit code, None if the server has ended."""
    assert process.pid is not None
    kill_descendants(process.pid)  # first: without a server, nothing adopts its orphans
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or has not created its group yet
        os.killpg(process.pid, signal.SIGKILL)
    with _server_lock:
        process.kill()
        exit_code = None
        # `process.exitcode` is 255 both for a lost server and for a process that exits with 255.
        with contextlib.suppress(EOFError):
            exit_code = forkserver.read_signed(process.sentinel)
        process.join()  # until the server closes the pipe of the exit code
        _running.discard(process.pid)
        process.close()
        if server := forkserver._forkserver._forkserver_pid:  # type: ignore[attr-defined]
            kill_descendants(server, _running)
    return exit_code


@contextlib.contextmanager
def _server_environment(log: Path) -> Iterator[None]:
    """Set the server's environment in this process during the block: multiprocessing has no parameter for it."""
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
