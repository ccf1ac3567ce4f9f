"""session.json: all that is recorded about one session, checked where it is parsed."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from devices.errors import FarmError
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts
from devices.platform import SIMULATED
from devices.untrusted import read_json
from tasks.bundle.accuracy import Accuracy, Finite
from tasks.bundle.cell import Arm, Mode, Status, Variant
from tasks.bundle.claims import CLAIM, Claims, contradiction_in
from tasks.bundle.failure_kinds import FAILURE_KINDS, OTHER
from tasks.bundle.memory_plan import MemoryPlan
from tasks.bundle.names import MAX_FILE_BYTES, FileName, Name, SessionId, Sha256
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime import Runtime, parse_runtime
from tasks.bundle.values import (
    MAX_INT,
    ClockAhead,
    Count,
    Moment,
    Night,
    Positive,
    SmallCount,
    SmallInt,
    first_mistake,
    formerly,
    require_counts,
    require_order,
)


class BundleError(FarmError):
    """A bundle is missing, incomplete or does not match its session.json; the text is one sentence."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Commit(_Record):
    """A commit by the first digits of its hash, with its author and the first line of its message."""

    id: Annotated[str, Field(pattern="^[0-9a-f]{7,64}$")]
    author: Annotated[str, Field(max_length=250)]
    subject: Annotated[str, Field(max_length=72)]


class Source(_Record):
    """A commit. Neither the remote's URL, which may contain a token, nor a path is recorded."""

    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]
    is_dirty: bool | None = None
    """Whether tracked files differed from it; None if git did not answer in time."""
    author: Annotated[str, Field(min_length=1, max_length=250)] | None = None
    """Who wrote it, by name without address: whom to ask about what it changed."""
    branch: Annotated[str, Field(min_length=1, max_length=250)] | None = None
    """What was checked out; None for a detached HEAD, as in CI."""
    commits: Annotated[list[Commit], Field(max_length=20)] | None = None
    """The newest commits, this one first; None if they are unknown."""


class SweepNight(_Record):
    """The sweep that a session belongs to: id (name, night and, with --again, a number), name and night."""

    sweep_id: FileName
    name: Name
    night: Night
    source: Source | None = None
    """The commit of the sweep file when this session was started: a sweep that is started again may have another."""
    on_demand: bool = False
    """Whether it was started with other settings than its file has: its sessions belong to no series and no night."""
    measured_later: bool = False
    """Whether it measures after its night what that night did not, with its runners: it raises no alarm."""

    @model_validator(mode="after")
    def _has_one_night(self) -> "SweepNight":
        """An id names one night, the last date in it: otherwise sessions of two nights would be pooled under it."""
        dates = re.findall(r"\d{4}-\d{2}-\d{2}", self.sweep_id)
        if dates[-1:] != [self.night] or not self.sweep_id.startswith(f"{self.name}-{self.night}"):
            text = "`sweep_id` is {sweep_id}, but the name is {name} and the night {night}"
            raise PydanticCustomError(
                "contradiction", text, {name: getattr(self, name) for name in ("sweep_id", "name", "night")}
            )
        return self


class DelegateShare(_Record):
    """What a backend took of the method: operators, and multiply-accumulates of one execution."""

    backend: Name
    """Its id in programs, such as XnnpackBackend."""
    operators: Count
    macs: Count | None = None
    """None where `macs` of the model is None."""


class ModelRecord(_Record):
    """The exported model that was measured; what is None was not recorded, or the export failed."""

    name: Name
    precision: Name
    seed: Count | None = None
    export_key: FileName | None = None
    """The name of its folder."""
    pte_sha256: str | None = None
    pte_bytes: Count | None = None
    method: Name = "forward"
    inputs_sha256: str | None = None
    """Of what is executed with the program: method, inputs and set-up; None without an export."""
    tokens: Count | None = None
    """Tokens that one execution of a language model processes."""
    kv_depth: Count | None = None
    """Tokens that are in its KV cache before the first execution."""
    prompt_tokens: Count | None = None
    """Of a prompt that is read in chunks, of which an execution reads the last one; the set-up reads the others."""
    steps: Count | None = None
    """Executions of a session, each one token further; None if each is at the same depth."""
    macs: Count | None = None
    """Multiply-accumulate operations of one execution; None of a dynamic shape, and of a .pte file from elsewhere."""
    read_bytes: Count | None = None
    """Bytes of weights and state that one execution reads, each once; None of a .pte file from elsewhere."""
    layer_count: Count | None = None
    """Layers with weights in the method; None of a .pte file from elsewhere. Of them and of their weights, those that
    are not stored in fp32:"""
    converted_layers: Count | None = None
    layer_weights: Count | None = None
    converted_weights: Count | None = None
    perplexity: Finite | None = None
    """Of a language model in eager PyTorch, converted by the recipe, on the text that its entry names."""
    versions: dict[str, str | None] = {}
    source_sha256: str | None = None
    """Of the files that the model was made from, except those of installed packages."""
    delegated: list[dict[str, Any]] = []
    portable: list[dict[str, Any]] = []
    delegates: list[DelegateShare] | None = None
    """By priority, also one that took nothing; None of a .pte file from elsewhere, and of old exports."""
    portable_operators: Count | None = None
    """Operators that no backend took, without those that only compute shapes and numbers."""
    portable_macs: Count | None = None
    delegate_calls: list[tuple[SmallCount, SmallCount, str]] | None = None
    """Chain, instruction and backend of each call of a delegate in the program; None if its program was not read."""
    memory: MemoryPlan | None = None
    """What the method needs of memory by its program; None if its program was not read."""

    @property
    def backends(self) -> dict[tuple[int, int], str]:
        return {(chain, instruction): backend for chain, instruction, backend in self.delegate_calls or []}


class RunnerRecord(_Record):
    runner_sha256: Name
    platform: Name
    kind: Name
    versions: dict[str, str | None]
    compiler: str | None = None
    source_sha256: str | None = None
    provenance: str | None = None


class DeviceRecord(_Record):
    """The device as in the inventory, and its facts (all None if it was never reached)."""

    name: Name
    transport: Name
    emulated: bool
    labels: dict[Name, str] = {}
    site: str | None = None
    facts: Facts = Facts()

    @model_validator(mode="after")
    def _simulated_is_emulated(self) -> Self:
        if self.transport == SIMULATED and not self.emulated:
            mistake = "a simulated device must be stated as `emulated`: its times mean nothing"
            raise PydanticCustomError("simulated", mistake)
        return self


class FileRecord(_Record):
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0, le=MAX_FILE_BYTES)]


class LimitCheck(_Record):
    """A limit for the start of a session, its last and worst value, and how long the session waited for it."""

    limit: Name
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
    """The origin of a session that the farm did not measure."""

    source: str
    experiment: str
    files: list[str]
    """Relative to the imported folder."""
    stated_by: list[str]
    """The configurations and manifests that describe it."""
    moment_is: str
    """What `started_at` and `ended_at` were taken from."""


class SessionRecord(_Record):
    bundle_version: Literal[1] = 1
    session_id: SessionId
    attempt: Positive
    sweep: SweepNight
    status: Status
    reason_code: str | None = None
    """A kind of failure_kinds.csv; None of a session that succeeded."""
    reason: str | None = None
    log_tail: str | None = None
    started_at: Moment
    ended_at: Moment
    clock_ahead_s: ClockAhead = 0
    """How far the clock that was read was ahead of the farm's; both times are corrected by it."""
    model: ModelRecord
    runner: RunnerRecord | None = None
    variant: Variant
    mode: Mode
    threads: Positive
    executions: Positive
    warmup_executions: SmallCount
    repetition: Annotated[int, Field(ge=-1, le=MAX_INT), formerly("repetition", "index")]
    """Number of the session in its cell, from 0; -1 for the first session of a device, which is always discarded."""
    device: DeviceRecord
    conditions: dict[Literal["before", "after"], Conditions | None]
    limit_checks: Annotated[list[LimitCheck], formerly("limit_checks", "gates")] = []
    """Empty without limits, if the device did not answer, and for a result that an earlier, killed controller left."""
    command: list[str] = []
    exit_code: SmallInt | None = None
    signal: SmallInt | None = None
    wall_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    stats: Stats | None = None
    accuracy: list[Accuracy] | None = None
    files: dict[FileName, FileRecord] = {}
    imported: ImportRecord | None = None
    arm: Arm | None = None
    farm_version: Name

    @model_validator(mode="before")
    @classmethod
    def _with_listed_kind(cls, data: Any) -> Any:
        """Replace a kind that only another version or tool has by `other`; the reason begins with it."""
        kind = data.get("reason_code") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind in FAILURE_KINDS:
            return data
        return data | {"reason_code": OTHER, "reason": f"{kind}: {data.get('reason') or 'no reason was recorded'}"}

    @property
    def claims(self) -> Claims:
        return Claims(
            self.variant,
            self.executions,
            self.warmup_executions,
            self.runner.platform if self.runner else None,
            self.device.facts,
            self.stats,
            self.wall_s,
            parse_runtime(self.model.name),
            Runtime(
                self.model.versions.get("executorch"), self.runner.versions.get("executorch") if self.runner else None
            ),
            None if self.model.delegate_calls is None else frozenset(self.model.backends.values()),
        )

    @model_validator(mode="after")
    def _without_contradictions(self) -> "SessionRecord":
        require_order(self.sweep.night, self.started_at, self.ended_at)
        for key in ("exit_code", "signal", "reason_code", "reason"):
            value = getattr(self, key)
            if self.status == "succeeded" and value:
                raise PydanticCustomError("contradiction", f"`status` is succeeded, but `{key}` is {value!r}")
        if self.status == "succeeded" and (cause := contradiction_in(self.claims)):
            raise PydanticCustomError(CLAIM, "{cause}", {"cause": cause})
        require_counts("device.facts", self.device.facts.model_dump())
        for moment, conditions in self.conditions.items():
            require_counts(f"conditions.{moment}", conditions.model_dump() if conditions else None)
        require_counts("model.delegated", self.model.delegated)
        require_counts("model.portable", self.model.portable)
        return self


Text = bytes | BundleError
"""The content of a session.json, or why it was refused before parsing."""


def parse_record(content: Text, path: str) -> SessionRecord:
    """Check the content of a session.json, which errors call `path`; raises BundleError with one sentence."""
    if isinstance(content, BundleError):
        raise content
    try:
        return read_json(SessionRecord, content)
    except ValidationError as error:
        if error.errors()[0]["type"] == CLAIM:
            raise BundleError(f"{path}: {first_mistake(error)}; check the runner and measure again") from None
        cause = f"does not match its schema ({first_mistake(error)})"
        raise BundleError(f"{path}: {cause}; restore the bundle from a backup") from None


def parse_records(texts: Iterable[tuple[str, Text]], *, skip_damaged: bool) -> Iterator[SessionRecord]:
    """Yield each record of (path, content); BundleError where damaged, unless skipped."""
    for path, content in texts:
        try:
            yield parse_record(content, path)
        except BundleError:
            if not skip_damaged:
                raise


def record_text(record: SessionRecord) -> bytes:
    return (record.model_dump_json(indent=1) + "\n").encode()
