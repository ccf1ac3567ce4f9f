"""The export server as the farm sees it: started with the first export, asked over a pipe, ended after the last."""

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from tasks.prepare.export.process import Request, exit_cause, export_command

_START_S = 300.0
_ANSWER_S = 60.0
_END_S = 10.0
_TRIES = 2
_LOG_NAME = "server.log"


class _ServerGoneError(Exception):
    """The server ended or does not answer; the text is how."""


@dataclass
class _Server:
    """A running server process, and who waits for which answer."""

    process: subprocess.Popen[bytes]
    log: Path
    waiting: dict[int, "queue.SimpleQueue[dict[str, Any] | None]"] = field(default_factory=dict)
    ready: threading.Event = field(default_factory=threading.Event)
    gone: bool = False


class ExportServer:
    """Starts a server with the first export and replaces it once, for an export, if it ends unexpectedly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._numbers = itertools.count()

    def run(self, request: Request, limit_bytes: int) -> dict[str, Any]:
        """Run an export in a child of the server; return its answer, or an error if the server failed twice."""
        request.log.write_bytes(b"")
        cause = ""
        for _ in range(_TRIES):
            server = self._started(request.log.with_name(_LOG_NAME))
            try:
                return self._ask(server, request, limit_bytes)
            except _ServerGoneError as gone:
                cause = f"{gone}; its log is {server.log}"
        return {"error": cause}

    def close(self) -> None:
        """End the server and its exports; the next export starts another one."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            _end(server)

    def _started(self, log: Path) -> _Server:
        with self._lock:
            if self._server is None or self._server.gone:
                command, environment = export_command(["--serve"])
                with log.open("wb") as stream:
                    process = subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=stream,
                        env=environment,
                        start_new_session=True,
                    )
                self._server = _Server(process, log)
                threading.Thread(target=self._listen, args=(self._server,), daemon=True).start()
            return self._server

    def _ask(self, server: _Server, request: Request, limit_bytes: int) -> dict[str, Any]:
        number, answers = next(self._numbers), queue.SimpleQueue[dict[str, Any] | None]()
        line = {
            "number": number,
            "arguments": request.arguments,
            "log": os.fspath(request.log),
            "deadline_s": request.deadline_s,
            "limit_bytes": limit_bytes,
            "folder": os.fspath(Path.cwd()),
            "environment": dict(os.environ),
        }
        with self._lock:
            server.waiting[number] = answers
            if server.gone:
                answers.put(None)
        if not server.ready.wait(_START_S):
            _end(server)
        with self._lock, contextlib.suppress(OSError, ValueError):  # it has ended, which `_listen` reports
            stream = cast(IO[bytes], server.process.stdin)
            stream.write(json.dumps(line).encode() + b"\n")
            stream.flush()
        try:
            answer = answers.get(timeout=request.deadline_s + _ANSWER_S)
        except queue.Empty:
            _end(server)
            raise _ServerGoneError("the export server did not answer") from None
        finally:
            with self._lock:
                server.waiting.pop(number, None)
        if answer is None:
            raise _ServerGoneError(exit_cause("the export server", server.process.wait()))
        return answer

    def _listen(self, server: _Server) -> None:
        """Deliver the server's answers until it ends; then tell all who wait."""
        for text in cast(IO[bytes], server.process.stdout):
            line = json.loads(text)
            if "ready" in line:
                server.ready.set()
                continue
            with self._lock:
                answers = server.waiting.get(line["number"])
            if answers is not None:
                answers.put(line["answer"])
        server.process.wait()
        with self._lock:
            server.gone = True
            for answers in server.waiting.values():
                answers.put(None)
        server.ready.set()


def _end(server: _Server) -> None:
    """End a server: it kills its exports when its input is closed; one that hangs is killed."""
    with contextlib.suppress(OSError):
        cast(IO[bytes], server.process.stdin).close()
    try:
        server.process.wait(_END_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()


export_server = ExportServer()
"""Of this process."""
