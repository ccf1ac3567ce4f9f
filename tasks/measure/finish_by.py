"""The time by which a sweep ends on its devices, and whether one more session would still end before it."""

import math
import statistics
from datetime import datetime, time, timedelta
from time import monotonic

from tasks.measure.clock import farm_time


def finish_moment(finish_by: str | None) -> datetime | None:
    """Return the next moment at which the clock of this machine shows `finish_by`, such as `07:00`.

    It has this machine's UTC offset: machines in other time zones use the same moment and print the time that is in
    the sweep file. None without a time.
    """
    if finish_by is None:
        return None
    at, now = time.fromisoformat(finish_by), local_farm_time()
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

    def end(self) -> None:
        self._took_s.append(monotonic() - self._begun)
