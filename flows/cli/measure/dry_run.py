"""`etfarm sweep FILE --dry-run`: what a sweep would measure, on which devices, and how long; nothing is started."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, load_inventory, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.reconnect import probe
from flows.warehouse.publish import ask_warehouse
from sql.errors import WarehouseError
from tasks.measure.health import Registry
from tasks.measure.night import sweep_night
from tasks.measure.plan import matches, plan_device
from tasks.measure.spec import SweepSpec
from tasks.prepare.runner.manifest import find_runner
from tasks.store.store import BundleStore
from tasks.store.var import Var

_ANSWER_S = 1.5
_NO_ANSWER = f"no answer within {_ANSWER_S} s; the sweep waits longer"


@dataclass
class _Asked:
    """What a device answered: its facts, or why it cannot be used."""

    facts: Facts | None = None
    cause: str = _NO_ANSWER


@dataclass(frozen=True)
class Planned:
    """What a sweep would do on one device."""

    device: str
    why_not: str
    """Empty if it would be measured."""
    cells: int
    sessions: int
    """At least: a model with several methods has more, which only its export shows."""
    measured: int
    """Sessions of tonight with a result."""
    seconds: tuple[float, float] | None
    """Least and most time for the rest by earlier nights; None if unknown."""
    runner: str


def dry_run(
    spec: SweepSpec, inventory: Path, night: date, again: bool, store: BundleStore, var: Path, warehouse: Path | None
) -> list[Planned]:
    """Return what each device of the inventory would measure; asks the devices side by side, for 1.5 s at most.

    Raises InputError if the inventory cannot be read, BundleError if the store does not answer.
    """
    listed = load_inventory(inventory)
    sweep = sweep_night(spec.name, night, store.sweep_ids(), again=again)
    known = {device.name: matches(spec.devices, device.selectable_labels()) for device in listed.devices}
    chosen = [device for device in listed.devices if not known[device.name]]
    answers = _ask(chosen, listed.labs, Registry(Var(var).registry))
    done = Counter(
        record.device.name
        for record in store.records(sweep.sweep_id, skip_damaged=True)
        if record.status == "succeeded" and record.arm is None
    )
    paces = _paces(spec.name, var, warehouse)
    planned = []
    for device in listed.devices:
        if device.name not in answers:
            planned.append(Planned(device.name, "; ".join(known[device.name]), 0, 0, 0, None, ""))
            continue
        asked = answers[device.name]
        facts = asked.facts or Facts()
        sessions = plan_device(spec, sweep, device.name, facts=facts, exports={}, runners={})
        cells = {session.cell for session in sessions}
        counted = sum(session.index >= 0 for session in sessions)
        left = max(counted - done[device.name], 0)
        pace = [seconds for sessions, seconds in paces.get(device.name, ()) if _is_alike(sessions, counted)]
        seconds = (left * min(pace), left * max(pace)) if pace else None
        why_not = "" if asked.facts else asked.cause
        runner = _runner(spec, device.platform or facts.platform, Var(var))
        planned.append(Planned(device.name, why_not, len(cells), counted, done[device.name], seconds, runner))
    return planned


def _ask(devices: Sequence[DeviceSpec], labs: Sequence[str], registry: Registry) -> dict[str, _Asked]:
    """Return what each device answers within the limit; one in a lab is asked by its worker only."""
    answers = {device.name: _Asked() for device in devices}

    def ask(device: DeviceSpec) -> None:
        try:
            health = registry.health(device.name)
            if not health.usable:
                answers[device.name] = _Asked(cause=f"it is {health}")
                return
            with open_device(device) as opened:
                probe(opened)
                answers[device.name] = _Asked(facts=read_facts(opened))
        except DeviceError as error:
            answers[device.name] = _Asked(cause=f"unreachable: {error.cause}")
        except FarmError as error:
            answers[device.name] = _Asked(cause=str(error))

    threads = []
    for device in devices:
        if device.site in labs:
            answers[device.name] = _Asked(cause=f"in lab {device.site}; only its worker reaches it")
            continue
        threads.append(threading.Thread(target=ask, args=(device,), daemon=True))
        threads[-1].start()
    end = time.monotonic() + _ANSWER_S
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    return dict(answers)


def _is_alike(sessions: int, planned: int) -> bool:
    """Whether a night measured about as much as is planned: with other models, its pace tells nothing."""
    return 0.75 * planned <= sessions <= 1.25 * planned


def _paces(name: str, var: Path, warehouse: Path | None) -> Mapping[str, list[tuple[int, float]]]:
    """Return sessions, and seconds of each, in the newest nights by device; nothing without a warehouse."""
    paces: dict[str, list[tuple[int, float]]] = {}
    try:
        for device, _, sessions, seconds in ask_warehouse("pace", var, warehouse, name=name):
            paces.setdefault(device, []).append((sessions, seconds))
    except WarehouseError:
        return {}
    return paces


def _runner(spec: SweepSpec, platform: str | None, places: Var) -> str:
    """Whether the runners that the sweep needs are built."""
    if platform is None:
        return "unknown platform"
    uses = [(variant, mode) for variant in spec.variants for mode in spec.modes]
    missing = [use for use in uses if not find_runner(places.runners, platform, *use)]
    return f"{platform}: {'built' if not missing else 'to build'}"


def lines_of(spec: SweepSpec, planned: Sequence[Planned], now: datetime) -> Iterator[str]:
    """Yield what a user reads: a sentence about all, then a line per device."""
    used = [each for each in planned if not each.why_not]
    sessions, measured = (sum(getattr(each, name) for each in used) for name in ("sessions", "measured"))
    counts = f"{sum(each.cells for each in used)} cells, {sessions} sessions, {measured} of them measured tonight"
    yield f"{spec.name}: {len(used)} of {len(planned)} devices, {counts}; {_time(used, now)}"
    pairs = len(spec.pairs)
    yield (
        f"exports: {pairs} pairs of model and recipe; which of them are exported already, which files have to be "
        "pushed and how many methods a model has is known when they are exported"
    )
    for each in planned:
        if each.why_not and not each.sessions:
            yield f"{each.device}: not used: {each.why_not}"
            continue
        state = f"now {each.why_not}" if each.why_not else "reachable"
        about = f"{each.cells} cells, {each.sessions} sessions, {each.measured} measured; runner {each.runner}"
        yield f"{each.device}: {state}; {about}; {_span(each.seconds)}"


def _time(used: Sequence[Planned], now: datetime) -> str:
    """Devices measure side by side: the slowest one decides."""
    known = [each.seconds for each in used if each.seconds is not None]
    if not used or len(known) < len(used):
        return "time unknown"
    least, most = max(each[0] for each in known), max(each[1] for each in known)
    end = (now + timedelta(seconds=most)).strftime("%H:%M")
    return f"{_span((least, most))} without exports, so until {end} or earlier"


def _span(seconds: tuple[float, float] | None) -> str:
    if seconds is None:
        return "time unknown: no earlier night measured as much"
    low, high = (f"{each / 60:.0f} min" if each >= 120 else f"{each:.0f} s" for each in seconds)
    return low if low == high else f"{low} to {high}"
