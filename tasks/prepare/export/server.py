"""The export server, `python -m tasks.prepare.export --serve`: imports torch once and forks a child per export.

Requests and answers are JSON lines on standard input and output. The server has no threads of Python, so that a fork is
safe. It ends, and kills its children, when its input is closed or the farm's process has ended; a child ends when the
server has.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import logging
import os
import selectors
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from tasks.prepare.export import child, used, warm
from tasks.prepare.export.process import answer_of, late

_LOOK_S = 1.0
_PR_SET_PDEATHSIG = 1
_BLOCK_BYTES = 1 << 16
# What exports import: for a small model, that takes longer than the export itself.
_PRELOADED = (
    "torch",
    "torch.export._trace",
    "executorch.exir",
    "executorch.devtools.etrecord",
    "executorch.backends.xnnpack.partition.xnnpack_partitioner",
    "executorch.backends.xnnpack.quantizer.xnnpack_quantizer",
    "torchao.quantization.pt2e.quantize_pt2e",
    "transformers.modeling_utils",
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Child:
    number: int
    pid: int
    watch: int
    """Becomes readable when the process has ended."""
    output: int
    """The file with its answer."""
    deadline_s: float
    ends_at_s: float


class Server:
    """Forks a child per request, and answers when it has ended."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # libraries print to stdout; that goes to the log
        self._farm = os.getppid()
        self._pid = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}
        self._unread = b""

    def serve(self) -> None:
        """Answer requests until the input is closed or the farm's process has ended."""
        preload()
        self._answer({"ready": True})
        self._selector.register(0, selectors.EVENT_READ, None)
        try:
            while os.getppid() == self._farm:
                for key, _ in self._selector.select(self._wait_s()):
                    if key.data is not None:
                        self._ended(key.data)
                    elif not self._read():
                        return
                for each in [each for each in self._children.values() if each.ends_at_s <= time.monotonic()]:
                    self._ended(each, is_late=True)
        finally:
            for each in self._children.values():
                _kill(each.pid)

    def _wait_s(self) -> float:
        ends = [each.ends_at_s - time.monotonic() for each in self._children.values()]
        return max(0.0, min([_LOOK_S, *ends]))

    def _read(self) -> bool:
        """Start what was requested; return whether the input is still open."""
        block = os.read(0, _BLOCK_BYTES)
        *lines, self._unread = (self._unread + block).split(b"\n")
        for line in lines:
            self._start(json.loads(line))
        return bool(block)

    def _start(self, request: dict[str, Any]) -> None:
        output = os.memfd_create("answer")
        pid = os.fork()
        if pid == 0:
            self._become_child(request, output)
        deadline_s = request["deadline_s"]
        each = _Child(request["number"], pid, os.pidfd_open(pid), output, deadline_s, time.monotonic() + deadline_s)
        self._children[pid] = each
        self._selector.register(each.watch, selectors.EVENT_READ, each)

    def _ended(self, each: _Child, *, is_late: bool = False) -> None:
        """Kill what is left of a child's process group and answer."""
        _kill(each.pid)
        _, status = os.waitpid(each.pid, 0)
        self._selector.unregister(each.watch)
        os.close(each.watch)
        del self._children[each.pid]
        with os.fdopen(each.output, "rb") as stream:
            stream.seek(0)
            written = stream.read()
        answer = late(each.deadline_s) if is_late else answer_of(written, os.waitstatus_to_exitcode(status))
        self._answer({"number": each.number, "answer": answer})

    def _answer(self, line: dict[str, Any]) -> None:
        self._answers.write(json.dumps(line) + "\n")
        self._answers.flush()

    def _become_child(self, request: dict[str, Any], output: int) -> NoReturn:
        """Run one export in this forked process, and end it."""
        code = 1
        try:
            os.setsid()
            _end_with_server()
            log = os.open(request["log"], os.O_WRONLY | os.O_APPEND)
            empty = os.open(os.devnull, os.O_RDONLY)
            for new, old in ((empty, 0), (log, 1), (log, 2)):
                os.dup2(new, old)
            os.close(self._answers.fileno())
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"] | {"PYTHONHASHSEED": "0"})
            own = ["--parent", str(self._pid), "--memory-limit", str(request["limit_bytes"])]
            with os.fdopen(output, "w", closefd=False) as answer_to:
                code = child.answer([*request["arguments"], *own], answer_to)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def preload() -> None:
    """Import what exports need; a part that is missing is left to the export that needs it."""
    # What is loaded from here on counts as used by every export. __mp_main__ is multiprocessing's name for __main__.
    used.loaded_before_exports.update(sys.modules, ["__mp_main__"])
    gc.disable()
    for name in _PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            logger.warning("%s: %s", name, error)
    with contextlib.suppress(ImportError):  # another version of executorch computes them in every export
        warm.compute_patterns()
    gc.enable()
    gc.freeze()  # a collection in a child would otherwise copy all pages of these modules


def _end_with_server() -> None:
    """Let the kernel kill this process when the server has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:  # between fork and setsid, the child has no group yet
        os.kill(group, signal.SIGKILL)
