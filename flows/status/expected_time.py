"""When a sweep ends: one estimate for its plan, its progress, `etfarm status` and the table in Prefect's UI."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sql.errors import NoWarehouse, WarehouseError
from tasks.bundle.cell import Cell
from tasks.store.workspace import Workspace

_MIN_SHARE = 0.75
WIDENING = 4 / 3
"""A night may be faster or slower than all of the few before it, by a third on a machine with other work."""
_WIDENING_OF_START = 1.1
"""Sessions of one start differ less."""
_Kind = tuple[str, str, int, str, str, int]
"""Model, precision, threads, variant, mode and executions."""
Seconds = tuple[float, float]
"""The shortest and the longest expected time."""


@dataclass(frozen=True)
class ExpectedEnd:
    earliest: datetime
    latest: datetime

    def __str__(self) -> str:
        """Return `19:52 to 19:58`; one time if both are the same minute; `19:58, overdue` if both have passed."""
        times = dict.fromkeys(f"{each:%H:%M}" for each in (self.earliest, self.latest))
        is_overdue = self.latest < datetime.now(self.latest.tzinfo)
        return f"{self.latest:%H:%M}, overdue" if is_overdue else " to ".join(times)


@dataclass(frozen=True)
class StepProgress:
    """A row of the progress of a sweep: a device with its sessions, or another step such as the exports."""

    step: str
    lab: str
    done: int
    of: int
    """Items planned so far."""
    failed: int
    doing: str
    end: ExpectedEnd | None = None
    """Of a device; None while it is unknown, and when the device has ended."""
    has_ended: bool = False

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.step}: {self.done} of {self.of}{failed}" + (f", until {self.end}" if self.end else "")


def expected_end(seconds: Seconds | None, now: datetime, finish_by: datetime | None = None) -> ExpectedEnd | None:
    """Return when work that takes `seconds` from now ends, not later than `finish_by`; None if that is unknown."""
    if seconds is None:
        return None
    ends = (now + timedelta(seconds=each) for each in seconds)
    return ExpectedEnd(*(min(each, finish_by) if finish_by else each for each in ends))


def end_of_sweep(steps: Sequence[StepProgress], devices: Iterable[str]) -> ExpectedEnd | None:
    """Return when the last device ends; None if that of a device is unknown, or all have ended."""
    by_name = {step.step: step for step in steps}
    rows = [by_name.get(name) for name in devices]
    ends = [row and row.end for row in rows if row is None or not row.has_ended]
    estimated = [end for end in ends if end]
    if not estimated or len(estimated) < len(ends):
        return None
    return ExpectedEnd(max(each.earliest for each in estimated), max(each.latest for each in estimated))


class SessionPace:
    """Mean seconds of each kind of session on each device: in its newest sweeps, and in this start of a sweep."""

    def __init__(self) -> None:
        self.unreadable: str | None = None
        """Why the earlier sweeps could not be read."""
        # Without lambdas, which no other process could be sent.
        self._sweeps: dict[str, dict[str, dict[_Kind, float]]] = defaultdict(partial(defaultdict, dict))
        self._of_start: dict[str, dict[_Kind, list[float]]] = defaultdict(partial(defaultdict, list))

    @classmethod
    def read(cls, models: Sequence[str], workspace: Workspace) -> "SessionPace":
        """Return the pace of earlier sweeps with these models; it is empty without a readable warehouse."""
        from flows.warehouse.readable import ask_warehouse  # slow to import; meanwhile the devices answer

        pace = cls()
        try:
            for device, sweep_id, *kind, seconds in ask_warehouse("pace", workspace, models=list(models)):
                pace._sweeps[device][sweep_id][tuple(kind)] = seconds
        except NoWarehouse:
            pass  # nothing was measured yet
        except WarehouseError as error:  # a sweep is complete without times
            pace.unreadable = str(error)
        return pace

    def add(self, device: str, cell: Cell, seconds: float) -> None:
        """Add a session that this start has measured; each device is added by one thread."""
        self._of_start[device][_kind(cell)].append(seconds)

    def seconds(self, device: str, cells: Iterable[Cell]) -> Seconds | None:
        """Return how long sessions of these cells take, one after the other; None if unknown.

        This start decides as soon as it measured three quarters of the kinds of sessions that are left; before, the
        range of the earlier sweeps that did. The other sessions are assumed to take as long as the rest.
        """
        kinds = [_kind(cell) for cell in cells]
        if not kinds:
            return 0.0, 0.0
        measured = {kind: sum(times) / len(times) for kind, times in self._of_start[device].items()}
        if total := _total(kinds, measured):
            return total / _WIDENING_OF_START, total * _WIDENING_OF_START
        totals = [total for sweep in self._sweeps[device].values() if (total := _total(kinds, sweep))]
        return (min(totals) / WIDENING, max(totals) * WIDENING) if totals else None


def _kind(cell: Cell) -> _Kind:
    return cell.model, cell.precision, cell.threads, cell.variant, cell.mode, cell.executions


def _total(kinds: Sequence[_Kind], seconds_of: dict[_Kind, float]) -> float | None:
    """Return the seconds of sessions of these kinds; None if less than `_MIN_SHARE` of them were measured."""
    matching = [seconds_of[kind] for kind in kinds if kind in seconds_of]
    return sum(matching) * len(kinds) / len(matching) if len(matching) >= _MIN_SHARE * len(kinds) else None
