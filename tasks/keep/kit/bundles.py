"""Turn results of the profiling kit into bundles that state where they come from and nothing that the kit does not."""

import hashlib
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from devices.ondevice.facts import Facts
from tasks.bundle.record import DeviceRecord, ImportRecord, ModelRecord, RunnerRecord, SessionRecord, SweepNight
from tasks.keep.kit.results import End, KitResult, judge
from tasks.store.files import scratch_folder, sha256_of
from tasks.store.store import BundleStore

KIT = "sme-executorch-profiling"
# How the kit names the folders of its builds, and what that states about the device.
_BUILDS = {"mac-arm64": ("macos", "macos-arm64"), "android-arm64": ("android", "android-arm64")}
_TAIL_BYTES = 4000


def import_kit(
    results: list[KitResult], folder: Path, store: BundleStore, *, device: str | None
) -> list[SessionRecord]:
    """Publish a bundle for each result of the kit below `folder`, and return the records.

    A result that was imported before is skipped. The kit does not record which device it measured: without a name,
    devices of different folders have different names.
    """
    name = device or f"unknown-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]}"
    published = []
    for result in results:
        session_id = _session_id(result)
        if store.find(session_id) is not None:
            continue
        end = judge(result)
        record = _record(result, end, session_id, name, folder)
        with scratch_folder() as collected:
            for source, target in _files(result, end):
                shutil.copyfile(source, collected / target)
            published.append(store.publish(record, collected))
    return published


def _session_id(result: KitResult) -> str:
    """Return an id of the content: the same result has the same id in any folder."""
    contents = [sha256_of(path) for path in (result.etdump, result.log) if path]
    what = [KIT, result.model, result.precision, result.experiment.name, result.mode, str(result.threads)]
    return hashlib.sha256("\n".join([*what, *contents]).encode()).hexdigest()[:16]


def _files(result: KitResult, end: End) -> Iterator[tuple[Path, str]]:
    """Yield the files to keep, with their names in a bundle; an ETDump of another run is not kept."""
    if result.log:
        yield result.log, "stdout.txt"
    if result.etdump and result.mode == "timing" and end.status != "failed":
        yield result.etdump, "model.etdump"


def _record(result: KitResult, end: End, session_id: str, device: str, folder: Path) -> SessionRecord:
    moment = _moment(result)
    files = [path for path in (result.etdump, result.log) if path]
    return SessionRecord(
        session_id=session_id,
        attempt=1,
        sweep=_sweep(result, moment),
        status=end.status,
        reason_code=end.code,
        reason=end.reason,
        log_tail=_tail(result) if end.status == "failed" else None,
        started_at=moment.isoformat(timespec="seconds"),
        ended_at=moment.isoformat(timespec="seconds"),
        # Not the hash of the .pte: the kit records none, and the file may have been exported again since.
        model=ModelRecord(name=result.model, precision=result.precision),
        runner=_runner(result),
        variant=result.variant,
        mode=result.mode,
        threads=result.threads,
        executions=end.executions,
        warmup_executions=min(1, end.executions - 1),
        index=0,
        device=DeviceRecord(name=device, transport="kit", emulated=False, facts=_facts(result)),
        conditions={"before": None, "after": None},
        exit_code=end.exit_code,
        signal=end.signal,
        farm_version=version("etfarm"),
        imported=ImportRecord(
            source=KIT,
            experiment=result.experiment.name,
            files=[str(path.relative_to(folder)) for path in files],
            stated_by=[str(config.path.relative_to(folder)) for config in result.configs],
            moment_is="generated_at of the manifest" if _stated_moment(result) else "modification time of the files",
        ),
    )


def _sweep(result: KitResult, moment: datetime) -> SweepNight:
    slug = "".join(letter if letter.isalnum() else "-" for letter in result.model.lower())
    night = moment.date().isoformat()
    return SweepNight(sweep_id=f"kit-{slug}-{night}", name=f"kit-{slug}", night=night)


def _stated_moment(result: KitResult) -> datetime | None:
    for config in result.configs:
        if config.generated_at:
            stated = datetime.fromisoformat(config.generated_at)
            return stated.astimezone(UTC) if stated.tzinfo else stated.replace(tzinfo=UTC)
    return None


def _moment(result: KitResult) -> datetime:
    """Return the best known time of the result: the kit records none per result."""
    if stated := _stated_moment(result):
        return stated
    times = [path.stat().st_mtime for path in (result.etdump, result.log) if path]
    return datetime.fromtimestamp(max(times), UTC)


def _runner(result: KitResult) -> RunnerRecord:
    path = result.experiment.runner_path
    sha = next((config.executorch_sha for config in result.configs if config.executorch_sha), None)
    # In place of a hash, what the builds with and without SME2 share: it keeps different runners apart, and the two
    # builds are compared with each other as the kit does.
    build = re.sub(r"[-_]sme2[-_](on|off)", "", path or result.experiment.name)
    return RunnerRecord(
        runner_sha256=f"unknown: {build}",
        platform=_build(result)[1],
        kind="kit",
        versions={"executorch": sha},
        provenance=f"{KIT}, experiment {result.experiment.name}, runner {path or 'not recorded'}",
    )


def _build(result: KitResult) -> tuple[str | None, str]:
    """Return the operating system and the platform that the runner's path or the experiment's name states."""
    text = f"{result.experiment.runner_path or ''} {result.experiment.name}"
    for build, (system, platform) in _BUILDS.items():
        if build in text or f"{build.partition('-')[0]}_sme2" in text:
            return system, platform
    return None, "unknown"


def _facts(result: KitResult) -> Facts:
    system, platform = _build(result)
    return Facts(os=system, platform=platform) if system else Facts()


def _tail(result: KitResult) -> str | None:
    return result.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace") if result.log else None
