"""The process of an export in the environment of another version of ExecuTorch: the parent's side, and `main` there.

The request is a line of JSON on its standard input, which stays open: its end means that the farm has ended. Answers
are JSON on its standard output: the text of each step, then an ExportOutcome. All that it prints goes to the log.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from tasks.bundle.runtime import base_model
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.process.child import ExportOutcome, end_all, export_here
from tasks.export.process.environments import Environment
from tasks.export.process.sandbox import adopt_orphans, kill_descendants

# The farm's packages come last: a folder of installed packages must not hide those of the environment.
_START = "import sys; sys.path.append({root!r}); from tasks.export.process.other_version import main; main()"


class _Answers:
    """The messages of the process; can be waited for like a connection."""

    def __init__(self, descriptor: int) -> None:
        self._connection: Connection[Any, Any] = Connection(descriptor, writable=False)

    def fileno(self) -> int:
        return self._connection.fileno()

    def recv(self) -> str | ExportOutcome:
        """Return the next message; raises EOFError after the last one."""
        message = json.loads(self._connection.recv_bytes())
        return message if isinstance(message, str) else ExportOutcome(**message)

    def close(self) -> None:
        self._connection.close()


class ExportProcess:
    """A running export, for a `with` block: at its end, the process and all that it started are killed."""

    def __init__(self, environment: Environment, request: ExportRequest, log: Path, limit_bytes: int) -> None:
        receiving, sending = os.pipe()
        self.answers = _Answers(receiving)
        self.exit_code: int | None = None
        with log.open("ab") as printed:
            self._process = subprocess.Popen(
                [str(environment.python), "-c", _START.format(root=os.fspath(Path(__file__).parents[3]))],
                env=_process_environment(environment),
                stdin=subprocess.PIPE,
                stdout=sending,
                stderr=printed,
                start_new_session=True,
            )
        os.close(sending)
        self.sentinel, ended = os.pipe()  # its end can be waited for together with the answers
        threading.Thread(target=self._close_when_ended, args=(ended,), daemon=True).start()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it could not start; its exit code and its log state why
            self._process.stdin.write(_to_json(request, log, limit_bytes))
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        kill_descendants(self._process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.exit_code = self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self.answers.close()
        os.close(self.sentinel)

    def _close_when_ended(self, descriptor: int) -> None:
        self._process.wait()
        os.close(descriptor)


def _process_environment(environment: Environment) -> dict[str, str]:
    """Return the variables of the process: like those of the export server, and its version's compiler of schemas."""
    tools = environment.site_packages / "executorch" / "data" / "bin"
    path = os.pathsep.join([os.fspath(tools), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"}


def _to_json(request: ExportRequest, log: Path, limit_bytes: int) -> bytes:
    """Return the request as a line; the name of an entry in a sweep file has no version, so that is separate."""
    entry = request.entry
    unnamed = entry.model_copy(update={"name": base_model(entry.name)}).model_dump(mode="json")
    about = {"entry": unnamed, "name": entry.name, "log": str(log), "limit_bytes": limit_bytes}
    about |= {"exports_dir": str(request.exports_dir.absolute()), "precision": request.precision}
    about |= {"seed": request.seed, "taps": request.taps}
    return json.dumps(about).encode() + b"\n"


class _Sender:
    """Sends steps and the outcome as JSON, like the connection of an export in the farm's own environment."""

    def __init__(self, descriptor: int) -> None:
        self._connection: Connection[Any, Any] = Connection(descriptor, readable=False)

    def send(self, message: str | ExportOutcome) -> None:
        content = message if isinstance(message, str) else asdict(message)
        self._connection.send_bytes(json.dumps(content).encode())


def main() -> None:
    """Export what standard input requests, and end this process."""
    about = json.loads(sys.stdin.buffer.readline())
    sender, log = _Sender(os.dup(1)), Path(about["log"])
    os.dup2(2, 1)  # libraries print to stdout
    adopt_orphans()
    entry = ModelEntry.model_validate(about["entry"]).model_copy(update={"name": about["name"]})
    request = ExportRequest(entry, about["precision"], Path(about["exports_dir"]), about["seed"], about["taps"])
    threading.Thread(target=_end_with_farm, daemon=True).start()
    export_here(request, log, about["limit_bytes"], sender)


def _end_with_farm() -> None:
    """Wait until the farm has closed standard input or has ended, then kill this process and everything below it."""
    sys.stdin.buffer.read()
    end_all()
