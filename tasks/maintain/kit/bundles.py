"""Turn results of the profiling kit into bundles: they state their origin, and only what the kit states."""

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pydantic import ValidationError

from devices.errors import FarmError, InputError
from devices.ondevice.facts import Facts
from devices.untrusted import UntrustedFileError, open_untrusted, read_untrusted
from tasks.bundle.names import ETDUMP, MAX_FILE_BYTES, MAX_LOG_BYTES
from tasks.bundle.record import DeviceRecord, ImportRecord, ModelRecord, RunnerRecord, SessionRecord, SweepNight
from tasks.bundle.values import first_mistake
from tasks.maintain.kit.config import checked_moment
from tasks.maintain.kit.results import KitEnd, KitResult, judge_result
from tasks.measure.session.record import check_loadable
from tasks.store.bundle_store import BundleStore
from tasks.store.files import hash_file, scratch_folder

KIT = "sme-executorch-profiling"
# How the kit names the folders of its builds, and what that states about the device.
_BUILDS = {"mac-arm64": ("macos", "macos-arm64"), "android-arm64": ("android", "android-arm64")}
_TAIL_BYTES = 4000


@dataclass(frozen=True)
class _Copies:
    """A result's files, copied so that nobody changes them; `moment` is when the newest was written."""

    folder: Path
    log: bytes | None
    etdump: Path | None
    moment: datetime

    @property
    def tail(self) -> str | None:
        """The last 4000 bytes of the log, None without a log."""
        return self.log[-_TAIL_BYTES:].decode(errors="replace") if self.log is not None else None


def import_kit(
    results: list[KitResult], folder: Path, store: BundleStore, *, device: str | None
) -> tuple[list[SessionRecord], list[str]]:
    """Publish a bundle for each result of the kit below `folder`; return the records, and why results were left out.

    A result that was imported before is skipped. The kit does not record which device it measured: without a name,
    devices of different folders have different names. Raises BundleError if the store cannot be written.
    """
    name = device or f"unknown-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}"
    published, left_out = [], []
    for result in results:
        with scratch_folder() as collected:
            try:
                copies = _copy_files(result, collected)
                session_id = _session_id(result, copies)
                if store.find(session_id) is not None:
                    continue
                record = _loadable_record(result, copies, session_id, name, folder)
            except (UntrustedFileError, InputError) as error:
                left_out.append(str(error))
                continue
            published.append(store.publish(record, collected))
    return published, left_out


def _copy_files(result: KitResult, folder: Path) -> _Copies:
    """Copy the files of a result, named as in a bundle; UntrustedFileError, or InputError for a wrong time."""
    log = read_untrusted(result.log, MAX_LOG_BYTES) if result.log else None
    if log is not None:
        (folder / "stdout.txt").write_bytes(log)
    copy = folder / ETDUMP
    if result.etdump:
        with open_untrusted(result.etdump, MAX_FILE_BYTES) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
    files = [path for path in (result.etdump, result.log) if path]
    try:
        moment = checked_moment(datetime.fromtimestamp(max(path.lstat().st_mtime for path in files), UTC))
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{files[0]}: nothing was measured at its modification time; `touch` it") from None
    return _Copies(folder, log, copy if result.etdump else None, moment)


def _session_id(result: KitResult, copies: _Copies) -> str:
    """Return an id from names and content: the same result has the same id in any folder."""
    contents = [hash_file(copies.etdump)] if copies.etdump else []
    contents += [hashlib.sha256(copies.log).hexdigest()] if copies.log is not None else []
    what = [KIT, result.model, result.precision, result.experiment.name, result.mode, str(result.threads)]
    return hashlib.sha256("\n".join([*what, *contents]).encode()).hexdigest()[:16]


def _loadable_record(result: KitResult, copies: _Copies, session_id: str, device: str, folder: Path) -> SessionRecord:
    """Return the record of a result; one that the warehouse would refuse is recorded as failed.

    Removes an ETDump that the bundle must not keep. Raises InputError without a valid record.
    """
    end = judge_result(result, (copies.log or b"").decode(errors="replace"), copies.etdump)
    try:
        if result.mode != "timing" or end.status == "failed":  # an ETDump of another run is not kept
            (copies.folder / ETDUMP).unlink(missing_ok=True)
        record = _build_record(result, end, copies, session_id, device, folder)
        try:
            check_loadable(record, copies.folder)
            return record
        except FarmError as error:
            cause = str(error).replace(f"{copies.folder}/", "")
        (copies.folder / ETDUMP).unlink(missing_ok=True)
        refused = KitEnd(result.experiment.runs, "failed", "not_loadable", f"the warehouse would refuse it: {cause}")
        return _build_record(result, refused, copies, session_id, device, folder)
    except ValidationError as error:
        raise InputError(f"{result.etdump or result.log}: not a result of the kit ({first_mistake(error)})") from None


def _build_record(
    result: KitResult, end: KitEnd, copies: _Copies, session_id: str, device: str, folder: Path
) -> SessionRecord:
    """Return the record of a result that ended with `end`; `session_id` and `device` are its names, `folder` the kit's.

    Raises ValidationError. The kit records no time of a result: that of the manifest, or of the files, is both start
    and end.
    """
    generated_at = next((config.generated_at for config in result.configs if config.generated_at), None)
    moment = generated_at or copies.moment
    name = "kit-" + "".join(char if char.isalnum() else "-" for char in result.model.lower())
    night = moment.date().isoformat()
    system, platform = _identify_build(result)
    facts = Facts(os=system, platform=platform) if system else Facts()
    files = [path for path in (result.etdump, result.log) if path]
    return SessionRecord(
        session_id=session_id,
        attempt=1,
        sweep=SweepNight(sweep_id=f"{name}-{night}", name=name, night=night),
        status=end.status,
        reason_code=end.code,
        reason=end.reason,
        log_tail=copies.tail if end.status == "failed" else None,
        started_at=moment.isoformat(timespec="seconds"),
        ended_at=moment.isoformat(timespec="seconds"),
        # Not the hash of the .pte: the kit records none, and the file may have been exported again since.
        model=ModelRecord(name=result.model, precision=result.precision),
        runner=_build_runner_record(result, platform),
        variant=result.variant,
        mode=result.mode,
        threads=result.threads,
        executions=end.executions,
        warmup_executions=min(1, end.executions - 1),
        repetition=0,
        device=DeviceRecord(name=device, transport="kit", emulated=False, facts=facts),
        conditions={"before": None, "after": None},
        exit_code=end.exit_code,
        signal=end.signal,
        farm_version=version("etfarm"),
        imported=ImportRecord(
            source=KIT,
            experiment=result.experiment.name,
            files=[str(path.relative_to(folder)) for path in files],
            stated_by=[str(config.path.relative_to(folder)) for config in result.configs],
            moment_is="generated_at of the manifest" if generated_at else "modification time of the files",
        ),
    )


def _build_runner_record(result: KitResult, platform: str) -> RunnerRecord:
    """Return the record of a runner of which the kit states at most the path and the commit of ExecuTorch."""
    path = result.experiment.runner_path
    sha = next((config.executorch_sha for config in result.configs if config.executorch_sha), None)
    # In place of a hash, what the builds with and without SME2 share: it keeps different runners apart, and the two
    # builds are compared with each other as the kit does.
    build = re.sub(r"[-_]sme2[-_](on|off)", "", path or result.experiment.name)
    return RunnerRecord(
        runner_sha256=f"unknown: {build}",
        platform=platform,
        kind="kit",
        versions={"executorch": sha},
        provenance=f"{KIT}, experiment {result.experiment.name}, runner {path or 'not recorded'}",
    )


def _identify_build(result: KitResult) -> tuple[str | None, str]:
    """Return operating system and platform as the runner's path or the experiment's name state; None and `unknown`."""
    text = f"{result.experiment.runner_path or ''} {result.experiment.name}"
    for build, (system, platform) in _BUILDS.items():
        if build in text or f"{build.partition('-')[0]}_sme2" in text:
            return system, platform
    return None, "unknown"
