"""The id of a sweep: its name, its night and, with --again, a number."""

from datetime import date
from pathlib import Path

from tasks.bundle import SweepNight


def sweep_night(name: str, night: date, bundles: Path, *, again: bool) -> SweepNight:
    """Return the newest sweep of that name and night, or a new one if `again`.

    Ids have the form `smoke-2026-11-20`; the second sweep of a night is `smoke-2026-11-20.2`.
    """
    first = f"{name}-{night.isoformat()}"
    taken = [1] if (bundles / first).is_dir() else []
    for folder in bundles.glob(f"{first}.*"):
        suffix = folder.name.removeprefix(f"{first}.")
        if suffix.isdigit():
            taken.append(int(suffix))
    newest = max(taken, default=0)
    number = newest + 1 if again and newest else max(newest, 1)
    sweep_id = first if number == 1 else f"{first}.{number}"
    return SweepNight(sweep_id=sweep_id, name=name, night=night.isoformat())
