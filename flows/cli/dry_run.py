"""`etfarm sweep FILE --dry-run`: what a sweep would measure, on which devices, and how long; nothing is started."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, load_inventory, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.ondevice.store import stored_hashes
from devices.retry import probe
from tasks.bundle.cell import Mode, Variant
from tasks.export.exported import Export
from tasks.measure.alternate import plan_noise
from tasks.measure.health import Registry
from tasks.measure.known_exports import KnownExport, known_export
from tasks.measure.night import sweep_night
from tasks.measure.only import chosen_of
from tasks.measure.plan import DISCARDED_INDEX, PlannedSession, export_for, matches, plan_device, still_to_run
from tasks.measure.sequential import Enough
from tasks.measure.spec import SweepSpec
from tasks.runner.build import runner_without_build
from tasks.runner.manifest import Runner
from tasks.store.store import BundleStore, ObjectStore
from tasks.store.var import Var

if TYPE_CHECKING:
    from flows.cli.pace import Pace

_ANSWER_S = 1.5
_NO_ANSWER = f"no answer within {_ANSWER_S} s; the sweep waits longer"
Runners = Mapping[tuple[Variant, Mode], Runner]


@dataclass
class _Asked:
    """What a device answered: its facts and what it stores, or why it cannot be used."""

    facts: Facts | None = None
    stored: set[str] = field(default_factory=set)
    cause: str = _NO_ANSWER
    in_lab: bool = False


@dataclass(frozen=True)
class Planned:
    """What a sweep would do on one device."""

    device: str
    state: str
    """reachable, in a lab, off or not selected."""
    why: str = ""
    cells: int = 0
    sessions: int = 0
    """At least: a model with several methods has more, which only its export shows."""
    measured: int = 0
    """Sessions of tonight with a result."""
    not_needed: int = 0
    """Further sessions that earlier ones of tonight made superfluous (`interval_percent`)."""
    unknown: int = 0
    """Sessions of which only an export tells whether they are measured."""
    seconds: tuple[float, float] | None = None
    """Least and most time for the rest by earlier sweeps; None if unknown."""
    push_bytes: int | None = None
    """What the device lacks of the exports that exist and of the runners; None if that is unknown."""
    platform: str | None = None
    runners_to_build: bool = False

    @property
    def is_used(self) -> bool:
        """Whether it would be measured now."""
        return self.state in ("reachable", "in a lab")


@dataclass(frozen=True)
class Plan:
    """What a sweep would do: its exports, and each device of the inventory."""

    sweep_id: str
    exports: list[KnownExport]
    devices: list[Planned]

    @property
    def is_possible(self) -> bool:
        """Whether a device would be measured."""
        return any(each.is_used for each in self.devices)


def dry_run(
    spec: SweepSpec,
    inventory: Path,
    only: Sequence[str],
    night: date,
    again: bool,
    store: BundleStore,
    var: Path,
    warehouse: Path | None,
) -> Plan:
    """Return what each device of the inventory would measure; asks the devices side by side, for 1.5 s at most.

    Raises InputError if the inventory cannot be read, or for a name in `only` that is not a device of the sweep;
    BundleError if the store does not answer.
    """
    listed, places = load_inventory(inventory), Var(var.absolute())
    why_not = {device.name: matches(spec.devices, device.selectable_labels()) for device in listed.devices}
    selected = [device for device in listed.devices if not why_not[device.name]]
    names = chosen_of(only, [device.name for device in selected], "device", spec.name)
    # They answer while this process finds out the rest, slow imports included.
    wait = _ask([device for device in selected if device.name in names], listed.labs, Registry(places.registry))
    from flows.cli.pace import Pace

    shelf, taps = store.shelf if isinstance(store, ObjectStore) else None, "numerics" in spec.modes
    pairs = {
        (entry.name, recipe): known_export(entry, recipe, places.exports, spec.seed, shelf, taps=taps)
        for entry, recipe in spec.pairs
    }
    sweep = sweep_night(spec.name, night, store.sweep_ids(), again=again)
    pace = Pace([model for model, _ in pairs], var, warehouse)
    answers = wait()
    one = _OneDevice(spec, pairs, places, store, sweep.sweep_id, pace)
    planned = []
    for device in listed.devices:
        if device.name in answers:
            asked = answers[device.name]
            platform = device.platform or (asked.facts.platform if asked.facts else None)
            runners = one.runners(platform)
            facts, exports = asked.facts or Facts(), one.exports
            sessions = plan_device(spec, sweep, device.name, facts=facts, exports=exports, runners=runners)
            sessions += plan_noise(spec, sweep, device.name, exports, runners)
            planned.append(one.planned(device.name, asked, sessions, runners, platform))
        else:
            why = "; ".join(why_not[device.name]) or "--device names others"
            planned.append(Planned(device.name, "not selected", why))
    return Plan(sweep.sweep_id, list(pairs.values()), planned)


@dataclass(frozen=True)
class _OneDevice:
    """What the plans of all devices have in common."""

    spec: SweepSpec
    pairs: Mapping[tuple[str, str], KnownExport]
    places: Var
    store: BundleStore
    sweep_id: str
    pace: "Pace"

    @property
    def exports(self) -> dict[tuple[str, str], tuple[Export, ...]]:
        """The cases of what is exported; none of a pair that is skipped."""
        return {pair: known.cases for pair, known in self.pairs.items() if known.cases is not None}

    def runners(self, platform: str | None) -> Runners:
        """The runners of a platform that need no build."""
        uses = [(variant, mode) for variant in self.spec.variants for mode in self.spec.modes]
        folder = self.places.runners
        found = {use: runner_without_build(platform, *use, folder) for use in uses} if platform else {}
        return {use: runner for use, runner in found.items() if runner}

    def planned(
        self, name: str, asked: _Asked, sessions: list[PlannedSession], runners: Runners, platform: str | None
    ) -> Planned:
        """What would be done on a device that the sweep selects."""
        records = list(self.store.records(self.sweep_id, device=name, skip_damaged=True))
        forgotten = self.store.forgotten()
        todo = still_to_run(sessions, records, forgotten)
        enough = Enough(sessions, records, self.spec.interval_percent, forgotten)
        left = enough.pending(todo)
        counted = [each for each in sessions if each.index != DISCARDED_INDEX]
        open_keys = {each.key for each in todo}
        unread = {pair for pair, known in self.pairs.items() if known.state == "unknown"}
        kinds = {(each.cell.variant, each.cell.mode) for each in counted}
        reachable = "reachable" if asked.facts else "off"
        return Planned(
            device=name,
            state="in a lab" if asked.in_lab else reachable,
            why="" if asked.facts else asked.cause,
            cells=len({each.cell for each in counted}),
            sessions=len(counted),
            measured=sum(each.key not in open_keys for each in counted),
            not_needed=len(todo) - len(left),
            unknown=sum((each.cell.model, each.cell.precision) in unread for each in counted),
            seconds=self.pace.seconds(name, left),
            push_bytes=_bytes_to_push(left, self.exports, runners, asked.stored) if asked.facts else None,
            platform=platform,
            runners_to_build=bool(kinds - set(runners)) if platform else False,
        )


def _bytes_to_push(
    sessions: Iterable[PlannedSession],
    exports: Mapping[tuple[str, str], Sequence[Export]],
    runners: Runners,
    stored: set[str],
) -> int:
    """Return the size of the runners, models and inputs that a device needs for sessions and does not store yet."""
    cases = {(case.model, case.precision): case for each in exports.values() for case in each}
    sizes: dict[str, int] = {}
    for session in sessions:
        runner = runners.get((session.cell.variant, session.cell.mode))
        if runner:
            sizes[runner.runner_sha256] = sum(int(file["bytes"]) for file in runner.files.values())
        if export := export_for(cases.get((session.cell.model, session.cell.precision)), session.cell.mode):
            sizes[export.pte_sha256] = export.pte_bytes
            for entry in (*export.data, *export.inputs, *(export.case.setup or {"inputs": []})["inputs"]):
                sizes[entry["sha256"]] = (export.folder / entry["file"]).stat().st_size
    return sum(size for sha256, size in sizes.items() if sha256 not in stored)


def _ask(devices: Sequence[DeviceSpec], labs: Sequence[str], registry: Registry) -> Callable[[], Mapping[str, _Asked]]:
    """Ask all devices; what is returned waits for their answers, within the limit. A lab's worker asks its own."""
    answers = {device.name: _Asked() for device in devices}

    def ask(device: DeviceSpec) -> None:
        try:
            health = registry.health(device.name)
            if not health.usable:
                answers[device.name] = _Asked(cause=f"it is {health}")
                return
            with open_device(device) as opened:
                probe(opened)
                facts = read_facts(opened)
                answers[device.name] = _Asked(facts, stored_hashes(opened, deadline_s=_ANSWER_S))
        except DeviceError as error:
            answers[device.name] = _Asked(cause=f"unreachable: {error.cause}")
        except FarmError as error:
            answers[device.name] = _Asked(cause=str(error))

    threads = []
    for device in devices:
        if device.site in labs:
            answers[device.name] = _Asked(cause=f"{device.site}; only its worker reaches the device", in_lab=True)
            continue
        threads.append(threading.Thread(target=ask, args=(device,), daemon=True))
        threads[-1].start()
    end = time.monotonic() + _ANSWER_S

    def wait() -> Mapping[str, _Asked]:
        for thread in threads:
            thread.join(max(end - time.monotonic(), 0))
        return dict(answers)

    return wait
