"""Shares of operators in the time: of the runs and the sessions in the middle half (docs/numbers.md)."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.robust_statistics import interquartile_indices
from tasks.etdump.columns import Etdump
from tasks.etdump.event_names import EventKind, parse_operator


@dataclass(frozen=True)
class TypicalRuns:
    """The middle half of the measured runs: how many, their nanoseconds together, and a mask of their events."""

    count: int
    execute_ns: float
    events: NDArray[np.bool_]


@dataclass(frozen=True)
class SessionTimes:
    """Time of a session, of kinds of events and of portable operators by name, in nanoseconds per run."""

    execute_ns: float
    of_kind: dict[EventKind, float]
    portable: dict[str, float]


@dataclass(frozen=True)
class Share:
    """Share in the time of a cell (0 to 1), and the smallest and largest share in any of its sessions."""

    value: float
    low: float
    high: float


def typical_runs(dump: Etdump, warmup_executions: int) -> TypicalRuns:
    """Return the runs whose mean is the time of the session."""
    typical = warmup_executions + interquartile_indices(dump.execute_ns[warmup_executions:])
    return TypicalRuns(len(typical), float(dump.execute_ns[typical].sum()), np.isin(dump.execution, typical))


def session_times(dump: Etdump, warmup_executions: int) -> SessionTimes:
    """Return the means over the middle half of the measured runs."""
    typical = typical_runs(dump, warmup_executions)
    of_kind = {}
    portable: defaultdict[str, float] = defaultdict(float)
    for kind in (EventKind.DELEGATED, EventKind.PORTABLE):
        rows = typical.events & (dump.kind == kind)
        of_kind[kind] = float(dump.self_ns[rows].sum()) / typical.count
        if kind == EventKind.PORTABLE:
            for name_id, self_ns in zip(dump.name_id[rows].tolist(), dump.self_ns[rows].tolist(), strict=True):
                portable[parse_operator(dump.names[name_id], kind).operator] += self_ns / typical.count
    return SessionTimes(typical.execute_ns / typical.count, of_kind, dict(portable))


def cell_sessions(sessions: Sequence[SessionTimes]) -> list[SessionTimes]:
    """Return the sessions whose mean is the time of their cell."""
    return [sessions[at] for at in interquartile_indices([session.execute_ns for session in sessions])]


def share(sessions: Sequence[SessionTimes], part: Callable[[SessionTimes], float]) -> Share:
    """Return the share of something in the time of a cell; `part` returns its nanoseconds per run of a session."""
    typical = cell_sessions(sessions)
    whole_ns = sum(session.execute_ns for session in typical)
    each = [part(session) / session.execute_ns if session.execute_ns else 0.0 for session in sessions]
    return Share(sum(map(part, typical)) / whole_ns if whole_ns else 0.0, min(each), max(each))
