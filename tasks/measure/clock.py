"""The clock of the farm: that of this machine, in a lab corrected by how far it is ahead; whether it was set.

And the time by which a sweep ends on its devices, and whether one more session would still end before it.
"""

import math
import statistics
import time
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from datetime import time as day_time
from time import monotonic

clock_ahead_s = ContextVar("clock_ahead_s", default=0.0)
"""Seconds that the clock of this machine is ahead of the farm's; a lab sets it."""
# While NTP slews the wall clock, the two clocks drift apart by 0.05 % at most; it steps a clock that is further off.
_SLEW = 0.001
_STEP_S = 2.0


def farm_time(moment: datetime | None = None) -> datetime:
    """Return the present time, or a moment of this machine's clock, by the farm's clock, in UTC."""
    return (moment or datetime.now(UTC)) - timedelta(seconds=clock_ahead_s.get())


class ClockWatch:
    """Detects, by the monotonic clock, that this machine's clock was set since now, or that the machine slept."""

    def __init__(self) -> None:
        self._wall_s, self._monotonic_s = time.time(), time.monotonic()

    def contradiction(self) -> str | None:
        """Return a sentence if the clock was set or the machine slept since the start; None otherwise."""
        passed_s = time.monotonic() - self._monotonic_s
        jump_s = time.time() - self._wall_s - passed_s
        if abs(jump_s) <= _STEP_S + _SLEW * passed_s:
            return None
        way = "forward" if jump_s > 0 else "back"
        jumped = f"the clock of this machine jumped {abs(jump_s):.1f} s {way} while {passed_s:.1f} s passed"
        return f"{jumped}; it was set or the machine slept"


def finish_moment(finish_by: str | None) -> datetime | None:
    """Return the next moment at which the clock of this machine shows `finish_by`, such as `07:00`.

    It has this machine's UTC offset: machines in other time zones use the same moment and print the time that is in
    the sweep file. None without a time.
    """
    if finish_by is None:
        return None
    at, now = day_time.fromisoformat(finish_by), local_farm_time()
    today = now.date()
    moment = datetime.combine(today, at).astimezone()
    return moment if moment > now else datetime.combine(today + timedelta(days=1), at).astimezone()


def drop_reason(moment: datetime) -> str:
    """Return why sessions were dropped: `would not have ended by 07:00`."""
    return f"would not have ended by {moment:%H:%M}"


def local_farm_time() -> datetime:
    """Return the present time by the farm's clock, in the time zone of this machine."""
    return farm_time().astimezone()


class FinishBy:
    """Estimates whether the next session of a device would end by a moment (None: always).

    A session is expected to take the median of those that this start has run on the device. Before the first one
    nothing is assumed: it starts if the moment has not passed.
    """

    def __init__(self, moment: datetime | None) -> None:
        self._moment = moment
        self._begun = monotonic()
        self._took_s: list[float] = []

    @property
    def left_s(self) -> float:
        """Seconds until the moment; 0 if it has passed, infinite without one."""
        return math.inf if self._moment is None else max((self._moment - local_farm_time()).total_seconds(), 0.0)

    @property
    def allows_next(self) -> bool:
        return self.left_s > (statistics.median(self._took_s) if self._took_s else 0.0)

    def begin(self) -> None:
        self._begun = monotonic()

    def end(self) -> float:
        """Return how many seconds the session took."""
        self._took_s.append(monotonic() - self._begun)
        return self._took_s[-1]
