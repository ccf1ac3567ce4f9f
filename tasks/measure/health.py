"""The health of devices over time: one JSON file per device.

Health is independent of state: a device may be idle and quarantined. Only the user retires a device.
"""

import fcntl
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from devices.errors import FarmError
from tasks.bundle.values import Moment, SmallCount, first_mistake
from tasks.measure.clock import farm_time
from tasks.store.files import write_complete

STRIKES = 3
QUARANTINE = timedelta(hours=12)


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Health:
    """The health of a device, since when and why; `until` is the end of a quarantine. Times are ISO, UTC."""

    state: Literal["good", "suspect", "quarantined", "retired"] = "good"
    reason: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    strikes: SmallCount = 0

    @property
    def usable(self) -> bool:
        return self.state in ("good", "suspect")

    def __str__(self) -> str:
        until = f" until {self.until}" if self.until else ""
        return f"{self.state}{until}" + (f": {self.reason}" if self.reason else "")


_HEALTH = TypeAdapter(Health)


class HealthError(FarmError):
    """The health file of a device is damaged, or a change is not possible; the text is one sentence."""


class Registry:
    """The health of every device below one folder; several processes may use it at once."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = farm_time) -> None:
        self._folder = folder
        self._now = now

    def health(self, name: str) -> Health:
        """Return the health now: good without a file, suspect after a quarantine. HealthError for a damaged file."""
        path = self._file(name)
        try:
            health = _HEALTH.validate_json(path.read_bytes())
            until = datetime.fromisoformat(health.until) if health.until else None
            expired = health.state == "quarantined" and until is not None and until <= self._now()
        except FileNotFoundError:
            return Health()
        except OSError as error:
            raise HealthError(f"{path}: cannot be read ({error.strerror}); remove it to reset {name}") from None
        except (ValueError, TypeError) as error:
            cause = first_mistake(error) if isinstance(error, ValidationError) else str(error)
            raise HealthError(
                f"{path}: the file is damaged ({cause}); remove it to reset the health of {name}"
            ) from None
        if expired:
            # The next strike quarantines it again.
            return Health("suspect", f"was quarantined: {health.reason}", health.until, None, STRIKES - 1)
        return health

    def strike(self, name: str, reason: str) -> Health:
        """Record a failure of a usable device: it becomes suspect, with the third in a row quarantined for 12 h."""
        with self._locked():
            health = self.health(name)
            if not health.usable:
                return health
            strikes, since = health.strikes + 1, _iso(self._now())
            if strikes < STRIKES:
                return self._write(name, replace(health, state="suspect", reason=reason, since=since, strikes=strikes))
            return self._write(name, self._quarantined(reason, QUARANTINE, strikes))

    def succeed(self, name: str) -> Health:
        """Record a success: a suspect device becomes good; a quarantined or retired one does not change."""
        with self._locked():
            health = self.health(name)
            return self._write(name, Health()) if health.state == "suspect" else health

    def quarantine(self, name: str, reason: str, duration: timedelta = QUARANTINE) -> Health:
        """Keep the device out of sweeps for `duration`; raises HealthError if it is retired."""
        with self._locked():
            health = self.health(name)
            if health.state == "retired":
                raise HealthError(f"{name}: the device is retired; release it first")
            return self._write(name, self._quarantined(reason, duration, health.strikes))

    def release(self, name: str) -> Health:
        """Clear a quarantine or retirement; also replaces a damaged file."""
        with self._locked():
            return self._write(name, Health())

    def retire(self, name: str, reason: str) -> Health:
        with self._locked():
            self.health(name)  # a damaged file is not replaced silently
            return self._write(name, Health("retired", reason, _iso(self._now())))

    def replace(self, name: str, expected: Health | None, health: Health) -> None:
        """Write a health that another machine determined, if the device's is still `expected` (None: in any case)."""
        with self._locked():
            if self.health(name) == expected or expected is None:
                self._write(name, health)

    def _quarantined(self, reason: str, duration: timedelta, strikes: int) -> Health:
        now = self._now()
        return Health("quarantined", reason, _iso(now), _iso(now + duration), strikes)

    def _write(self, name: str, health: Health) -> Health:
        write_complete(self._file(name), json.dumps(asdict(health), indent=1).encode())
        return health

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _file(self, name: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise HealthError(f"{name!r} is not a valid device name; use letters, digits, dots, dashes and underscores")
        return self._folder / f"{name}.json"


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
