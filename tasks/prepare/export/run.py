"""Run one export in a separate process: forked from the export server on Linux, a new one elsewhere."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from tasks.prepare.export.client import export_server
from tasks.prepare.export.memory import out_of_memory
from tasks.prepare.export.places import export_places
from tasks.prepare.export.process import Request, answer_of, export_command, late

HAS_SERVER = sys.platform == "linux"
"""Elsewhere a fork of a process that has loaded torch is unsafe: macOS's own libraries do not support it."""


def run_export(request: Request) -> dict[str, Any]:
    """Export in a separate process group, killed at the deadline; return {"folder": name} or {"error": cause}.

    Waits for a place. An export that needs more memory than its share is run again alone with all that is available.
    """
    with export_places.one() as limit_bytes:
        answer = _run(request, limit_bytes)
    if "out_of_memory" in answer:
        with export_places.all() as whole_bytes:
            answer = _run(request, whole_bytes) if whole_bytes > limit_bytes else answer
    return answer


def end_server() -> None:
    """End the export server, which otherwise ends with this process; a later export starts another one."""
    if HAS_SERVER:
        export_server.close()


def _run(request: Request, limit_bytes: int) -> dict[str, Any]:
    answer = export_server.run(request, limit_bytes) if HAS_SERVER else _run_process(request, limit_bytes)
    # Code in C++ that does not handle a failed allocation ends the process.
    is_memory = "signal" in answer and any(word in request.log.read_bytes() for word in (b"bad_alloc", b"MemoryError"))
    return out_of_memory(limit_bytes) if is_memory else answer


def _run_process(request: Request, limit_bytes: int) -> dict[str, Any]:
    """Run the export in a new process, which imports everything itself."""
    own = ["--parent", str(os.getpid()), "--memory-limit", str(limit_bytes)]
    command, environment = export_command([*request.arguments, *own])
    # The answer goes to a file and not to a pipe: a process that the model leaves running would keep a pipe open.
    with tempfile.TemporaryFile() as output, request.log.open("wb") as stream:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=stream, env=environment, start_new_session=True
        )
        try:
            child.wait(request.deadline_s)
        except subprocess.TimeoutExpired:
            return late(request.deadline_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        return answer_of(output.read(), child.returncode)
