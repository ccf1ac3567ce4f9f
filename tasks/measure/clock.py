"""The clock of the farm: that of this machine, in a lab corrected by how far it is ahead; and whether it was set."""

import time
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

clock_ahead_s = ContextVar("clock_ahead_s", default=0.0)
"""Seconds that the clock of this machine is ahead of the farm's; a lab sets it."""
# While NTP slews the wall clock, the two clocks drift apart by 0.05 % at most; it steps a clock that is further off.
_SLEW = 0.001
_STEP_S = 2.0


def farm_time(moment: datetime | None = None) -> datetime:
    """Return the present time, or a moment of this machine's clock, by the farm's clock, in UTC."""
    return (moment or datetime.now(UTC)) - timedelta(seconds=clock_ahead_s.get())


class ClockWatch:
    """Detects that the clock of this machine was set since now, by comparison with the monotonic clock.

    It detects sleep, too: the monotonic clock stops then.
    """

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
