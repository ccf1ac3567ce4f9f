"""The kinds of failure: a stable list of why a session failed or is invalid, with what each means and what to do.

`reason_code` of a session is one of them, in bundles, views, metrics and JSON. A kind is never renamed or removed.
docs/reference/values.md shows the list.
"""

import csv
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEFAULT = "Run the sweep again: sessions that failed are repeated, finished ones are kept"
_NOTHING = r"(?!)"
OTHER = "other"
"""The kind of a bundle whose kind this version of the farm does not have."""
# Signals whose numbers differ between systems: this machine may be another one than the device.
_MACOS_SIGNALS = {7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGURG", 30: "SIGUSR1", 31: "SIGUSR2"}
_LINUX_SIGNALS = {7: "SIGBUS", 10: "SIGUSR1", 12: "SIGUSR2", 16: "SIGSTKFLT", 30: "SIGPWR", 31: "SIGSYS"}


@dataclass(frozen=True)
class FailureKind:
    """A row of failure_kinds.csv."""

    kind: str
    subject: str
    """What to look at first: model, runner, device, conditions, result or farm."""
    phrase: str
    """The predicate of a sentence about a model: `crashes`; empty if the failure says nothing about the model."""
    meaning: str
    remedy: str
    printed: re.Pattern[str]
    """What a runner prints that ends so, as far as this identifies the kind."""


def _read_kinds() -> dict[str, FailureKind]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as stream:
        rows: list[dict[str, Any]] = list(csv.DictReader(stream))
    kinds = [FailureKind(**row | {"printed": re.compile(row["printed"] or _NOTHING)}) for row in rows]
    return {each.kind: each for each in kinds}


FAILURE_KINDS = _read_kinds()
"""All kinds; of those that a runner's text identifies, the more specific one comes first."""

OF_DEVICE = {kind.kind for kind in FAILURE_KINDS.values() if kind.subject == "device"}
"""Kinds that are about the device, whatever model should have run."""


def remedy(kind: str | None) -> str:
    """Return what to do about a session of this kind, one sentence; code is between backticks."""
    return f"{FAILURE_KINDS[kind].remedy if kind in FAILURE_KINDS else _DEFAULT}."


def printed_kind(lines: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the kind that a runner's last lines identify, and the names in them: operators, or a backend.

    None if they identify none.
    """
    text = "\n".join(lines)
    for kind in FAILURE_KINDS.values():
        if kind.printed.search(text):
            named = (name for match in kind.printed.finditer(text) for name in match.groups() if name)
            return kind.kind, list(dict.fromkeys(name for group in named for name in group.split(", ")))
    return None


def signal_name(number: int, system: str | None) -> str:
    """Return the name of a signal on a device with the operating system `system`: `SIGBUS`; `signal 99` without one."""
    of_system = _MACOS_SIGNALS if system == "macos" else _LINUX_SIGNALS
    if number in of_system:
        return of_system[number]
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
