"""End the processes that a model started, also those in a session of their own, with the process of its export.

On Linux, the process of an export and the server that it is forked from adopt orphans below them
(PR_SET_CHILD_SUBREAPER of prctl(2)), so that none leaves this tree. Elsewhere only the process group is ended.
"""

import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

_log = logging.getLogger(__name__)
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS, _PAUSE_S = 500, 0.01
_HAS_TREE = sys.platform == "linux"


def adopt_orphans() -> None:
    """Become the parent of processes below this one whose parent ends."""
    if _HAS_TREE:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_below(pid: int, spared: Collection[int] = ()) -> None:
    """Kill what runs below a process, except the `spared` ones and what runs below these, until nothing is left."""
    if not _HAS_TREE:
        return
    for _ in range(_ROUNDS):
        found = _below(pid, spared)
        if not found:
            return
        for each in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    _log.warning("processes that a model started cannot be ended: %s", ", ".join(map(str, found)))


def _below(pid: int, spared: Collection[int]) -> list[int]:
    """Return the processes below `pid` that have not ended."""
    children: dict[int, list[int]] = defaultdict(list)
    ended = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            children[int(parent)].append(int(path.parent.name))
            if state in "ZX":
                ended.add(int(path.parent.name))
    found, queue = [], [pid]
    while queue:
        below = [each for each in children[queue.pop()] if each not in spared]
        found += below
        queue += below
    return [each for each in found if each not in ended]
