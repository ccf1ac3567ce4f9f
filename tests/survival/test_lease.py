"""The checks of the stress of leases find what they are there for; the stress is a command (tests/survival/lease)."""

from pathlib import Path
from typing import Any

import pytest

from tests.survival.lease.history import Notes, faults, read_notes


def held(token: str, pid: int, at_s: float, until_s: float, machine: int = 0) -> dict[str, Any]:
    return {"kind": "held", "machine": machine, "token": token, "pid": pid, "at_s": at_s, "until_s": until_s}


def end(token: str, at_s: float) -> dict[str, Any]:
    return {"kind": "end", "token": token, "at_s": at_s}


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        ([held("a", 1, 0, 9), held("b", 2, 5, 9)], "a and b held it at once for 4.00 s"),
        ([held("a", 1, 0, 9), held("b", 1, 5, 6), end("b", 5.5), end("a", 8)], "a and b held it at once for 0.50 s"),
        ([held("a", 1, 0, 3), held("a", 1, 2, 9), held("b", 2, 5, 9)], "a and b held it at once for 4.00 s"),
        ([held("a", 1, 0, 20), held("b", 2, 5, 6), held("c", 3, 7, 8)], "a and c held it at once for 1.00 s"),
        ([{"kind": "lost", "machine": 0, "token": "a", "left_s": 0.5}], "a lost its lease 0.50 s before it expired"),
    ],
)
def test_two_holders_and_lost_leases_are_found(tmp_path: Path, notes: list[dict[str, Any]], found: str) -> None:
    written = Notes(tmp_path / "1.notes")
    for note in notes:
        written.add(**note)
    assert found in "\n".join(faults(read_notes(tmp_path)))


@pytest.mark.parametrize(
    "notes",
    [
        [held("a", 1, 0, 9), end("a", 4), held("b", 2, 5, 9)],
        [held("a", 1, 0, 4), held("b", 2, 5, 9)],
        [held("a", 1, 0, 9), held("b", 2, 5, 9, machine=1)],
        [held("a", 1, 0, 9), {"kind": "kill", "pid": 1, "at_s": 4}, held("b", 2, 5, 9)],
        [held("a", 1, 0, 4), held("b", 2, 5, 6), end("b", 6), held("a", 1, 7, 9)],
        [{"kind": "lost", "machine": 0, "token": "a", "left_s": -0.5}],
    ],
    ids=["released", "expired", "another machine", "killed", "renewed late", "lost after its expiry"],
)
def test_holders_one_after_the_other_are_no_fault(notes: list[dict[str, Any]]) -> None:
    assert faults(notes) == []
