"""Free space by rules: thin the events of old nights, pack old bundles, remove unused exports and runners."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from devices.errors import FarmError
from flows.warehouse.publish import publish_of
from tasks.maintain.prune import (
    events_of_old_nights,
    only_one,
    pack_sweep,
    thin_old_nights,
    unused_archives,
    unused_folders,
)
from tasks.store.files import remove_at_once, size_bytes
from tasks.store.store import BundleStore, LocalStore
from tasks.store.var import Var

_EVENT_BYTES = 12.8  # in a warehouse of 100 million events
_NIGHT = re.compile(r"-(\d{4}-\d{2}-\d{2})(\.\d+)?$")


@dataclass(frozen=True)
class Rules:
    """After how many days each rule applies; nothing of the newest night is ever touched."""

    thin_days: int
    pack_days: int
    unused_days: int


@dataclass(frozen=True)
class Plan:
    """What the rules apply to now."""

    thin_before: date
    events: dict[date, int]
    sweeps: list[str]
    unused: list[Path]

    @property
    def is_empty(self) -> bool:
        """Whether no rule applies to anything."""
        return not (self.events or self.sweeps or self.unused)


def plan_prune(rules: Rules, bundles: BundleStore, var: Path, warehouse: Path | None, today: date) -> Plan:
    """Return what `prune` would do; changes nothing. Raises BundleError if a recent bundle is damaged."""
    places = Var(var)
    nights = {sweep_id: _night_of(sweep_id) for sweep_id in bundles.sweep_ids()}
    newest = max((night for night in nights.values() if night), default=today)
    thin_before, pack_before, recent_from = (
        min(newest, today - timedelta(days=days)) for days in (rules.thin_days, rules.pack_days, rules.unused_days)
    )
    recent = [sweep_id for sweep_id, night in nights.items() if night is None or night >= recent_from]
    records = (record for sweep_id in recent for record in bundles.records(sweep_id))
    written_before_s = datetime.combine(recent_from, datetime.min.time()).timestamp()
    archives = []
    if isinstance(bundles, LocalStore):
        archives = unused_archives(Path(bundles.shelf.location), before_s=written_before_s)
    return Plan(
        thin_before=thin_before,
        events=events_of_old_nights(warehouse or places.warehouse, thin_before),
        sweeps=[
            sweep_id
            for sweep_id, night in nights.items()
            if night and night < pack_before and isinstance(bundles, LocalStore)
            if any((bundles.root / sweep_id).glob("[!.]*"))  # not only unfinished ones
        ],
        unused=unused_folders(places.exports, places.runners, records, before_s=written_before_s) + archives,
    )


def describe(plan: Plan, bundles: BundleStore) -> Iterator[str]:
    """Yield a line for each thing that a plan would do."""
    for night, events in plan.events.items():
        yield f"thin {night}: {events} events, about {_megabytes(events * _EVENT_BYTES)} inside the warehouse"
    for sweep_id in plan.sweeps:
        folder = Path(bundles.location) / sweep_id
        yield f"pack {sweep_id}: {len(bundles.session_ids(sweep_id))} bundles, {_megabytes(size_bytes(folder))}"
    for folder in plan.unused:
        yield f"remove {folder}: {_megabytes(size_bytes(folder))}"


def prune(plan: Plan, bundles: BundleStore, var: Path, warehouse: Path | None) -> Iterator[str]:
    """Carry out a plan, and yield a line for each thing that was done or could not be done.

    Killed at any time, nothing is lost, and the next prune does the rest. Raises FarmError if another one is running.
    """
    with only_one(bundles.root if isinstance(bundles, LocalStore) else var):
        for sweep_id in plan.sweeps:
            try:
                packed = pack_sweep(Path(bundles.location), sweep_id)
            except FarmError as error:
                yield f"not packed: {error}"
                continue
            sizes = f"{_megabytes(packed.before_bytes)} -> {_megabytes(packed.after_bytes)}"
            yield f"packed {sweep_id}: {packed.bundles} bundles, {sizes}"
        if plan.events:
            thin_old_nights(warehouse or Var(var).warehouse, plan.thin_before)
            publish_of(var, warehouse)
            yield f"thinned {len(plan.events)} nights: {sum(plan.events.values())} events removed"
        for folder in plan.unused:
            remove_at_once(folder)
            yield f"removed {folder}"


def _night_of(sweep_id: str) -> date | None:
    """Return the night in the id of a sweep; None if it has none, and no rule applies to the sweep."""
    found = _NIGHT.search(sweep_id)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
