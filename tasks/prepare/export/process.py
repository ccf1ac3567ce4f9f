"""What an export process is asked, how it is started, and how it ended."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """What an export process is to do: `arguments` are those of `python -m tasks.prepare.export`."""

    arguments: list[str]
    log: Path
    deadline_s: float


def export_command(arguments: list[str]) -> tuple[list[str], Mapping[str, str]]:
    """Return the command `python -m tasks.prepare.export` with these arguments, and its environment."""
    # -P: the folder of the models must not hide the farm's packages; PYTHONPATH: the child uses those of this process.
    command = [sys.executable, "-P", "-m", "tasks.prepare.export", *arguments]
    path = os.pathsep.join(filter(None, [os.fspath(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")]))
    # With a fixed hash seed, sets of names have the same order and the same model gives the same bytes.
    return command, os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}


def late(deadline_s: float) -> dict[str, Any]:
    """Return the answer of an export that was stopped at its deadline."""
    return {"error": f"the export did not finish within {deadline_s:g} s"}


def answer_of(written: bytes, returncode: int) -> dict[str, Any]:
    """Return what the export process answered, or how it ended if it did not."""
    if written:
        answer: dict[str, Any] = json.loads(written)
        return answer
    return {"error": exit_cause("the export process", returncode)} | ({"signal": -returncode} if returncode < 0 else {})


def exit_cause(process: str, returncode: int) -> str:
    """Return how a process ended, as a sentence."""
    if returncode == -signal.SIGKILL:
        return f"{process} was killed, possibly out of memory"
    if returncode < 0:
        return f"{process} was killed by {signal.Signals(-returncode).name}"
    return f"{process} exited with code {returncode}"
