"""What each holder believed and for how long, written as it happens, and what is wrong with it."""

import json
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


def clock_s() -> float:
    """Return the clock that decides when a lease expires on this machine: seconds since its boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def expiry_s(asked_s: float, ttl_s: int) -> float:
    """Return when a lease ends at the earliest that was asked for at a moment: the device counts whole seconds."""
    return math.floor(asked_s) + ttl_s + 1.0


@dataclass(frozen=True)
class Belief:
    """The time in which the holder with a token, in the process `pid`, may use a machine."""

    machine: int
    token: str
    pid: int
    begin_s: float
    end_s: float


class Notes:
    """The notes of one process; each line is in its file before the holder goes on."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def add(self, kind: str, **more: Any) -> None:
        self._file.write(json.dumps({"kind": kind, **more}) + "\n")


def read_notes(folder: Path) -> list[dict[str, Any]]:
    """Return the notes of all processes, without a last line that a killed process has not finished."""
    lines = [line for path in sorted(folder.glob("*.notes")) for line in path.read_text("utf-8").split("\n")[:-1]]
    return [json.loads(line) for line in lines]


def beliefs(notes: Iterable[dict[str, Any]]) -> list[Belief]:
    """Return the time that each holder was told, up to its release or the end of its process.

    A lease that was renewed after its expiry begins again.
    """
    closed: list[Belief] = []
    running: dict[str, Belief] = {}
    killed_s = {note["pid"]: note["at_s"] for note in notes if note["kind"] == "kill"}
    for note in notes:
        if note["kind"] == "held":
            told = Belief(note["machine"], note["token"], note["pid"], note["at_s"], note["until_s"])
            before = running.pop(told.token, None)
            if before and before.end_s >= told.begin_s:
                told = replace(told, begin_s=before.begin_s, end_s=max(before.end_s, told.end_s))
            elif before:
                closed.append(before)
            running[told.token] = told
        elif note["kind"] == "end" and note["token"] in running:
            belief = running.pop(note["token"])
            closed.append(replace(belief, end_s=min(belief.end_s, note["at_s"])))
    closed += running.values()
    ended = (replace(each, end_s=min(each.end_s, killed_s.get(each.pid, math.inf))) for each in closed)
    return [each for each in ended if each.end_s > each.begin_s]


def faults(notes: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each moment with two holders, and for each lease that was lost before its expiry."""
    found = [
        f"machine {note['machine']}: {note['token']} lost its lease {note['left_s']:.2f} s before it expired"
        for note in notes
        if note["kind"] == "lost" and note["left_s"] > 0
    ]
    last: dict[int, Belief] = {}
    for each in sorted(beliefs(notes), key=lambda each: each.begin_s):
        before = last.get(each.machine)
        if before and before.end_s > each.begin_s:
            both_s = min(before.end_s, each.end_s) - each.begin_s
            names = f"{before.token} and {each.token}"
            found.append(f"machine {each.machine}: {names} held it at once for {both_s:.2f} s at {each.begin_s:.2f}")
        if before is None or each.end_s > before.end_s:
            last[each.machine] = each
    return found


def figures(notes: list[dict[str, Any]]) -> dict[str, int]:
    """Return how often each thing happened; `by` of a note is a subdivision."""
    counts: Counter[str] = Counter()
    for note in notes:
        counts[note["kind"]] += note.get("times", 1)
        if "by" in note:
            counts[f"{note['kind']}: {note['by']}"] += note.get("times", 1)
    return dict(counts)
