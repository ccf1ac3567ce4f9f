"""The inputs of a sweep: its exports, the facts of its devices, and their runners."""

import contextlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.retry import probe_with_retry
from tasks.bundle.cell import Use
from tasks.bundle.delegates import needed_backends
from tasks.export.entry import EXPORT_DEADLINE_S, ExportRequest, ModelEntry
from tasks.export.export import export_cases, failed_path, is_shared, read_local_export, skipped_path
from tasks.export.exported import Export, ExportError, NotApplicableError, read_exports
from tasks.export.key import check_user_functions, export_key, files_to_read
from tasks.export.process.environments import stated_environment
from tasks.measure.health import HealthError, Registry
from tasks.measure.matrix_rules import spec_delegates
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.build import build_runner, find_runner_without_build
from tasks.runner.delegate_files import why_no_library
from tasks.runner.manifest import Runner, find_runner
from tasks.store.blob_store import BlobStore
from tasks.store.files import write_complete
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.export.process.run import OnStep

_log = logging.getLogger(__name__)
_MAX_READ_BYTES = 100_000_000
Pair = tuple[str, str]
"""A model and a recipe."""
Cases = tuple[Export, ...]
ExportState = Literal["ready", "shared", "to export", "skipped", "not needed", "unknown", "wrong"]


@dataclass(frozen=True)
class ExportStatus:
    state: ExportState
    """shared: another machine has exported it; skipped: the recipe has no meaning for the model; not needed: no device
    of the sweep can run its delegate; unknown: too large to be read for it; wrong: it cannot be exported."""
    cases: Cases = ()
    note: str = ""
    """Why it is skipped, not needed, unknown or wrong."""

    @property
    def is_pending(self) -> bool:
        """Whether it has to be exported, fetched or read first."""
        return self.state in ("shared", "to export", "unknown")


@dataclass(frozen=True)
class ExportSnapshot:
    statuses: Mapping[Pair, ExportStatus] = field(default_factory=dict)

    @cached_property
    def ready(self) -> dict[Pair, Cases]:
        """The cases of each pair; none if the recipe has no meaning for the model, or no device can run it."""
        ended = ("ready", "skipped", "not needed")
        return {pair: each.cases for pair, each in self.statuses.items() if each.state in ended}

    @cached_property
    def cases(self) -> dict[Pair, Export]:
        """Each case by its full name, `model` or `model@case`, and its recipe."""
        return {(case.model, case.precision): case for cases in self.ready.values() for case in cases}

    @cached_property
    def skipped(self) -> dict[Pair, str]:
        """Why the recipe of a pair has no meaning for its model."""
        return {pair: each.note for pair, each in self.statuses.items() if each.state == "skipped"}

    @cached_property
    def errors(self) -> dict[Pair, str]:
        return {pair: each.note for pair, each in self.statuses.items() if each.state == "wrong"}

    @cached_property
    def pending(self) -> frozenset[Pair]:
        """The pairs whose export has not ended yet."""
        return frozenset(pair for pair, each in self.statuses.items() if each.is_pending)


@dataclass(frozen=True)
class ExportSettings:
    """The folder of a sweep's exports, and the settings of all of them."""

    folder: Path
    seed: int
    shared_files: BlobStore | None
    """Storage that several machines share."""
    has_numerics: bool
    """Whether the program of the mode numerics, which also returns the values of layers, is exported with each."""
    deadline_s: float = EXPORT_DEADLINE_S


def export_settings(spec: SweepSpec, workspace: Workspace) -> ExportSettings:
    store = workspace.store
    shared_files = None if isinstance(store, LocalStore) else store.shared_files
    return ExportSettings(
        workspace.exports.absolute(), spec.seed, shared_files, "numerics" in spec.modes, spec.export_deadline_s
    )


def start_exports(spec: SweepSpec, settings: ExportSettings) -> None:
    """Start to import torch in the background if a model has to be exported; errors appear in the sweep."""
    with contextlib.suppress(FarmError, OSError):
        own = [(entry, recipe) for entry, recipe in spec.pairs if not stated_environment(entry.name, settings.folder)]
        if any(quick_export_status(entry, recipe, settings).state == "to export" for entry, recipe in own):
            from tasks.export.process.run import start_server

            start_server(settings.folder / "logs")


def make_export(entry: ModelEntry, recipe: str, settings: ExportSettings, tell: "OnStep") -> Cases:
    """Export a model by a recipe unless that was done, with the program of the mode numerics if it is needed.

    A program that cannot be made for numerics is a `tapped_error` of the cases, and recorded. Raises as `export_cases`
    does.
    """
    request = ExportRequest(entry, recipe, settings.folder, settings.seed, deadline_s=settings.deadline_s)
    cases = export_cases(request, shared_files=settings.shared_files, on_step=tell)
    if not settings.has_numerics:
        return cases
    request = replace(request, taps=True)
    try:
        tapped = export_cases(request, shared_files=settings.shared_files, on_step=tell)
    except FarmError as error:
        if not entry.pte:
            with contextlib.suppress(FarmError, OSError):  # without the record, a dry run lists the export again
                write_complete(failed_path(settings.folder, export_key(request)), error.reason.encode())
        _log.warning("%s %s, mode numerics: %s", entry.name, recipe, error)
        return tuple(replace(case, tapped_error=error.reason) for case in cases)
    return with_tapped(cases, tapped)


def with_tapped(cases: Cases, tapped: Cases) -> Cases:
    """Return the cases with those of the program made for the mode numerics."""
    return tuple(replace(case, tapped=each) for case, each in zip(cases, tapped, strict=True))


def _with_recorded_error(cases: Cases, folder: Path, tapped_key: str) -> Cases | None:
    """Return the cases with why the program for numerics could not be made; None if no attempt has failed."""
    failed = failed_path(folder, tapped_key)
    if not failed.is_file():
        return None
    error = failed.read_text(encoding="utf-8")
    return tuple(replace(case, tapped_error=error) for case in cases)


def verified_export_status(entry: ModelEntry, recipe: str, settings: ExportSettings) -> ExportStatus:
    """Return the status of an export, its files compared with their hashes; FarmError if it cannot be exported."""
    try:
        request = ExportRequest(entry, recipe, settings.folder, settings.seed)
        cases = read_local_export(request)
        if cases and settings.has_numerics and not entry.pte:
            request = replace(request, taps=True)
            tapped = read_local_export(request)
            if tapped:
                cases = with_tapped(cases, tapped)
            else:
                cases = _with_recorded_error(cases, settings.folder, export_key(request))
    except NotApplicableError as reason:
        return ExportStatus("skipped", note=str(reason))
    return ExportStatus("ready", cases) if cases else ExportStatus("to export")


def quick_export_status(entry: ModelEntry, recipe: str, settings: ExportSettings) -> ExportStatus:
    """Return the status of an export in milliseconds, without torch and hashes; BundleError of the storage."""
    folder, request = settings.folder, ExportRequest(entry, recipe, settings.folder, settings.seed)
    try:
        if not entry.pte:
            check_user_functions(request)
        size = sum(path.stat().st_size for path in files_to_read(request) if path.is_file())
        environment = stated_environment(entry.name, folder)
        if environment and not environment.is_installed:  # what it contains is part of the key
            return ExportStatus("to export")
        if size > _MAX_READ_BYTES:
            return ExportStatus("unknown", note=f"{size / 1e9:.1f} GB of files decide, and were not read")
        key = _prebuilt_key(entry, settings) if entry.pte else export_key(request)
        # A program that exists already has none for numerics: no layer of it can be read.
        with_numerics = settings.has_numerics and not entry.pte
        keys = [key, export_key(replace(request, taps=True))] if with_numerics else [key]
    except NotApplicableError as reason:
        return ExportStatus("skipped", note=str(reason))
    except (FarmError, OSError) as error:
        return ExportStatus("wrong", note=str(error))
    complete = {each: cases for each in keys if (cases := _complete_cases(folder / each))}
    if len(complete) == len(keys) and len({len(cases) for cases in complete.values()}) == 1:
        cases, *tapped = complete.values()
        return ExportStatus("ready", with_tapped(cases, tapped[0]) if tapped else cases)
    if with_numerics and key in complete and (cases := _with_recorded_error(complete[key], folder, keys[1])):
        return ExportStatus("ready", cases)
    skipped = skipped_path(folder, key)
    if skipped.is_file():
        return ExportStatus("skipped", note=skipped.read_text(encoding="utf-8"))
    missing = [each for each in keys if each not in complete]
    is_elsewhere = settings.shared_files and missing and all(is_shared(settings.shared_files, each) for each in missing)
    return ExportStatus("shared" if is_elsewhere else "to export")


def _prebuilt_key(entry: ModelEntry, settings: ExportSettings) -> str:
    from tasks.export.bundled import unbundle  # slow to import, as is what reads programs
    from tasks.export.prebuilt import describe_prebuilt

    return describe_prebuilt(entry, unbundle(entry, settings.folder), settings.seed)[0]


def _complete_cases(folder: Path) -> Cases | None:
    """Return the cases of an export; None if it is missing or damaged, or its program has another size."""
    try:
        exports = read_exports(folder)
        return exports if exports[0].pte.stat().st_size == exports[0].pte_bytes else None
    except (ExportError, OSError):
        return None


def missing_environments(spec: SweepSpec, settings: ExportSettings) -> list[str]:
    """Return what the exports of a sweep install first, a sentence for each version of executorch; ExportError."""
    environments = []
    for entry, _ in spec.pairs:
        with contextlib.suppress(NotApplicableError):  # which is skipped
            environments.append(stated_environment(entry.name, settings.folder))
    return list(dict.fromkeys(each.cost for each in environments if each and not each.is_installed))


@dataclass(frozen=True)
class Probe:
    """The result of probing a device: its facts, or why it cannot be used."""

    device: DeviceSpec
    facts: Facts = field(default_factory=Facts)
    unusable: str | None = None
    strike: str | None = None
    """The failure of the device, for its health; None if the device is not the cause."""

    @property
    def platform(self) -> str | None:
        """The platform of the runner for this device; the inventory entry overrides what the device reports."""
        return self.device.platform or self.facts.platform


def probe_device(device: DeviceSpec, registry: Registry, answer_s: float | None = None) -> Probe:
    """Check the health of a device, wait until it answers, and read its facts; `answer_s` replaces PROBE.within_s."""
    try:
        health = registry.health(device.name)
        if not health.usable:
            return Probe(device, unusable=f"{device.name} is {health}; see `etfarm devices release --help`")
        with open_device(device) as opened:
            probe_with_retry(opened, answer_s)
            return Probe(device, read_facts(opened))
    except DeviceError as error:
        return Probe(device, unusable=str(error), strike=error.cause)
    except HealthError as error:
        return Probe(device, unusable=str(error))


@dataclass(frozen=True)
class Runners:
    """The runners of one platform by use; `error` is why one could not be built here."""

    by_use: dict[Use, Runner] = field(default_factory=dict)
    error: str | None = None


def runner_uses(spec: SweepSpec) -> list[Use]:
    versions = dict.fromkeys(each.runner for each in spec.executorch)
    return [Use(*each) for each in product(spec.variants, spec.modes, versions, spec_delegates(spec))]


def build_runners(platform: str, uses: Iterable[Use], folder: Path) -> Runners:
    """Build the runners of a platform, once per content, and return that of each use, also if a build failed.

    A platform whose wheel lacks the library of a delegate has no runner to build for it, which is not a failure.
    """
    uses, errors = list(uses), dict[_Build, str]()
    for build in dict.fromkeys(map(_build, uses)):
        version, backends = build
        if backends is None or why_no_library(platform, backends):
            continue
        try:
            build_runner(platform, folder, version, backends)
        except FarmError as failure:
            errors[build] = str(failure)
    runners = {use: runner for use in uses if (runner := find_runner(folder, platform, use))}
    # A registered runner may be of a version that cannot be built; one of an earlier build must not seem to be new.
    built = {_build(use) for use in uses if use not in runners or runners[use].kind != "registered"}
    built.add((None, frozenset()))
    return Runners(runners, "; ".join(text for build, text in errors.items() if build in built) or None)


_Build = tuple[str | None, frozenset[str] | None]


def _build(use: Use) -> _Build:
    """Return the version and the backends that the runner of a use is built with; no backends: none can be built."""
    return use.version, needed_backends(use.delegate)


def runners_without_build(platform: str | None, uses: Iterable[Use], folder: Path) -> Runners:
    """Return the runners that a sweep would use now without a build; none of an unknown platform."""
    if platform is None:
        return Runners()
    return Runners({use: runner for use in uses if (runner := find_runner_without_build(platform, use, folder))})
