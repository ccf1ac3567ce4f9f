"""The id of a sweep: its name, its night and, with --again, a number."""

from collections.abc import Iterable
from datetime import date

from tasks.bundle import SweepNight


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
