"""The bundle of a session on disk: published in one step, never changed, checked on every read."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from devices.errors import FarmError
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts
from devices.platform import SIMULATED
from tasks.bundle.cell import Mode, Purpose, Status, Variant
from tasks.bundle.values import (
    MOST_INT,
    Count,
    FileName,
    Positive,
    SessionId,
    SmallCount,
    SmallInt,
    first_mistake,
    require_counts,
    require_stats,
)
from tasks.measure.source import Source
from tasks.store.files import publish_folder, sha256_of

RECORD = "session.json"
Finite = Annotated[float, Field(allow_inf_nan=False)]


class BundleError(FarmError):
    """A bundle is missing, incomplete or does not match its session.json; the text is one sentence."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SweepNight(_Record):
    """The sweep that a session belongs to: id (name, night and, with --again, a number), name and night."""

    sweep_id: FileName
    name: str
    night: str
    source: Source | None = None
    """The commit of the sweep file when this session was started: a sweep that is started again may have another."""
    on_demand: bool = False
    """Whether it was started with other settings than its file has: its sessions belong to no series and no night."""


class ModelRecord(_Record):
    """The exported model that was measured; what is None was not recorded, or the export failed."""

    name: str
    precision: str
    seed: Count | None = None
    export_key: str | None = None
    pte_sha256: str | None = None
    pte_bytes: Count | None = None
    method: str = "forward"
    inputs_sha256: str | None = None
    """Of what is executed with the program: method, inputs and set-up; None in bundles of an older farm."""
    tokens: Count | None = None
    """Tokens that one execution of a language model processes."""
    kv_depth: Count | None = None
    """Tokens that are in its KV cache before."""
    versions: dict[str, str | None] = {}
    source_sha256: str | None = None
    """Of the files that the model was made from, except those of installed packages."""
    delegated: list[dict[str, Any]] = []
    portable: list[dict[str, Any]] = []


class RunnerRecord(_Record):
    """The runner bundle that was used."""

    runner_sha256: str
    platform: str
    kind: str
    versions: dict[str, str | None]
    compiler: str | None = None
    source_sha256: str | None = None
    provenance: str | None = None


class DeviceRecord(_Record):
    """The device: its name and labels in the inventory, and its facts (all None if it was never reached)."""

    name: str
    transport: str
    emulated: bool
    labels: dict[str, str] = {}
    site: str | None = None
    facts: Facts = Facts()

    @model_validator(mode="after")
    def _simulated_times_mean_nothing(self) -> Self:
        if self.transport == SIMULATED and not self.emulated:
            raise ValueError("a simulated device must be stated as `emulated`: its times mean nothing")
        return self


class Accuracy(_Record):
    """One output compared with one reference; errors are None without a pair of finite values.

    The figures from `snr_db` on are None in bundles of an older farm; see tasks/measure/session/difference.py for each.
    """

    output: SmallCount
    reference: Literal["eager", "fp32"] = "eager"
    """Eager PyTorch in the recipe's precision, or in fp32."""
    max_abs_error: float | None
    max_rel_error: float | None
    nonfinite_mismatches: Count
    snr_db: float | None = None
    cosine: float | None = None
    top1_agreement: float | None = None
    least_snr_db: float | None = None
    """The limit that applied."""
    is_inaccurate: bool | None = None
    """Whether the output is beyond the limit; None if it was not judged."""


class FileRecord(_Record):
    """A file of the bundle."""

    sha256: str
    bytes: Count


class GateRecord(_Record):
    """A limit that was set for the start of a session, and how long the session waited for it."""

    limit: str
    """Its name in the sweep file, such as max_die_c."""
    bound: Finite
    value: Finite | None
    """In the limit's unit, at the last reading before the start; None if it could not be read, and was not applied."""
    worst: Finite | None = None
    """The value that was farthest outside; None if none was."""
    waited_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    """A wait for several limits counts for the first of them."""
    note: str | None = None
    """Why there is no value."""


class ImportRecord(_Record):
    """Where a session comes from that the farm did not measure."""

    source: str
    experiment: str
    files: list[str]
    """Relative to the imported folder."""
    stated_by: list[str]
    """The configurations and manifests that describe it."""
    moment_is: str
    """What `started_at` and `ended_at` were taken from."""


class ArmRecord(_Record):
    """The side of a comparison that a session was measured for, alternately with the other side."""

    purpose: Purpose
    comparison: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    side: Literal["a", "b"]


class SessionRecord(_Record):
    """session.json: everything that is known about one session."""

    bundle_version: Literal[1] = 1
    session_id: SessionId
    attempt: Positive
    sweep: SweepNight
    status: Status
    reason_code: str | None = None
    reason: str | None = None
    log_tail: str | None = None
    started_at: str
    ended_at: str
    model: ModelRecord
    runner: RunnerRecord | None = None
    variant: Variant
    mode: Mode
    threads: Positive
    executions: Positive
    warmup_executions: SmallCount
    index: Annotated[int, Field(ge=-1, le=MOST_INT)]
    """Number of the session in its cell; -1 for the first session of a device, which is always discarded."""
    device: DeviceRecord
    conditions: dict[Literal["before", "after"], Conditions | None]
    gates: list[GateRecord] = []
    """Empty without limits, if the device did not answer, and for a result that an earlier, killed controller left."""
    command: list[str] = []
    exit_code: SmallInt | None = None
    signal: SmallInt | None = None
    wall_s: Annotated[float, Field(ge=0)] | None = None
    stats: dict[str, Any] | None = None
    accuracy: list[Accuracy] | None = None
    files: dict[FileName, FileRecord] = {}
    imported: ImportRecord | None = None
    arm: ArmRecord | None = None
    farm_version: str

    @model_validator(mode="after")
    def _without_contradictions(self) -> "SessionRecord":
        for key in ("exit_code", "signal", "reason_code", "reason"):
            value = getattr(self, key)
            if self.status == "succeeded" and value:
                raise PydanticCustomError("contradiction", f"`status` is succeeded, but `{key}` is {value!r}")
        require_stats(self.stats)
        require_counts("device.facts", self.device.facts.model_dump())
        for moment, seen in self.conditions.items():
            require_counts(f"conditions.{moment}", seen.model_dump() if seen else None)
        require_counts("model.delegated", self.model.delegated)
        require_counts("model.portable", self.model.portable)
        return self


@dataclass(frozen=True)
class Verified:
    """A bundle whose files were read and compared with their hashes."""

    session_id: str
    sweep_id: str
    sha256: str | None
    """Of session.json, or of an ETDump outside any bundle; None if it cannot be read."""
    damage: str | None = None
    """What is wrong with it, in one sentence."""
    files: int = 0


def publish_bundle(bundles: Path, record: SessionRecord, collected: Path) -> SessionRecord:
    """Write the bundle of `record` with the files of the folder `collected`; return the record as it is on disk.

    The folder `bundles/<sweep_id>/<session_id>` is published completely or not at all; `record.files` is set here.
    Raises BundleError if the disk is full or read-only.
    """
    final = bundles / record.sweep.sweep_id / record.session_id
    try:
        with publish_folder(final) as aside:
            files = {}
            for source in sorted(path for path in collected.iterdir() if path.is_file()):
                target = aside / source.name
                shutil.copyfile(source, target)
                files[source.name] = FileRecord(sha256=sha256_of(target), bytes=target.stat().st_size)
            complete = record.model_copy(update={"files": files})
            (aside / RECORD).write_bytes(record_text(complete))
    except OSError as error:
        raise BundleError(
            f"{final}: cannot write the bundle ({error.strerror or error}); no partial bundle is left"
        ) from None
    return read_record(final)


def read_record(folder: Path) -> SessionRecord:
    """Read and check session.json alone; raises BundleError with one sentence."""
    path = folder / RECORD
    try:
        return parse_record(path.read_bytes(), str(path))
    except FileNotFoundError:
        way_on = "restore it from a backup, or name its .etdump file to load it without its session"
        raise BundleError(f"{folder}: damaged bundle: session.json is missing; {way_on}") from None
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror})") from None


def parse_record(content: bytes, path: str) -> SessionRecord:
    """Check the content of a session.json, which errors call `path`; raises BundleError with one sentence."""
    try:
        return SessionRecord.model_validate_json(content)
    except ValidationError as error:
        cause = f"does not match its schema ({first_mistake(error)})"
        raise BundleError(f"{path}: {cause}; restore the bundle from a backup") from None


def parse_records(
    texts: Iterable[tuple[str, bytes]], *, device: str | None = None, skip_damaged: bool
) -> Iterator[SessionRecord]:
    """Yield the record of each session.json, or of those of one device, given as their paths and contents.

    Raises BundleError where one is damaged, unless such ones are skipped.
    """
    for path, content in texts:
        try:
            record = parse_record(content, path)
            if device in (None, record.device.name):
                yield record
        except BundleError:
            if not skip_damaged:
                raise


def record_text(record: SessionRecord) -> bytes:
    """Return the content of session.json."""
    return (record.model_dump_json(indent=1) + "\n").encode()


def read_bundle(folder: Path) -> SessionRecord:
    """Read session.json and check every file's size and hash against it; raises BundleError with one sentence."""
    record = read_record(folder)
    for name, wanted in record.files.items():
        path = folder / name
        if not path.is_file():
            raise BundleError(f"{path}: the file is missing from its bundle; restore the bundle from a backup")
        if path.stat().st_size != wanted.bytes or sha256_of(path) != wanted.sha256:
            raise BundleError(f"{path}: the file does not match its hash in session.json; restore it from a backup")
    return record


def bundle_sha256(folder: Path) -> str:
    """Return the hash of session.json, which holds the hashes of all other files; raises OSError."""
    return sha256_of(folder / RECORD)
