"""The night of a sweep, and the sweep's id: its name, its night and, with --again, a number."""

import contextlib
import re
from collections.abc import Iterable
from datetime import date

from devices.errors import InputError
from tasks.bundle.record import SweepNight


def parse_night(text: str) -> date:
    """Return the night that is written as `2026-11-01`; raises InputError."""
    with contextlib.suppress(ValueError):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            return date.fromisoformat(text)
    raise InputError(f"`{text}` is not a night; write a date such as 2026-11-01")


def night_or_today(night: date | None, today: date) -> date:
    """Return the night that a sweep belongs to, today if None is named; raises InputError for one in the future."""
    if night and night > today:
        raise InputError(f"the night {night} is in the future (today is {today}); name today or an earlier night")
    return night or today


def sweep_night(name: str, night: date, sweep_ids: Iterable[str], *, again: bool) -> SweepNight:
    """Return the newest sweep of that name and night among `sweep_ids` (those with bundles), or a new one if `again`.

    Ids have the form `smoke-2026-11-20`; the second sweep of a night is `smoke-2026-11-20.2`.
    """
    first = f"{name}-{night.isoformat()}"
    taken = []
    for known in sweep_ids:
        suffix = known.removeprefix(f"{first}.")
        if known == first:
            taken.append(1)
        elif suffix != known and suffix.isdigit():
            taken.append(int(suffix))
    newest = max(taken, default=0)
    number = newest + 1 if again and newest else max(newest, 1)
    sweep_id = first if number == 1 else f"{first}.{number}"
    return SweepNight(sweep_id=sweep_id, name=name, night=night.isoformat())
