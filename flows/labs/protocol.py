"""Messages between a sweep and the runs of a lab: JSON files in the store of the bundles, below `labs/`.

The sweep writes `<start>/<run>/order` before a run starts, and `<start>/exports` whenever an export has ended. The run
writes `<start>/<run>/results/<device>`.
"""

import time
from importlib.metadata import version
from typing import Any, Literal, Self, TypeVar
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    FiniteFloat,
    ValidationError,
    field_serializer,
    model_validator,
)
from pydantic_core import from_json

from devices.errors import InputError
from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from devices.untrusted import read_json
from flows.device.job import DeviceTally
from tasks.bundle.cell import Use
from tasks.bundle.record import BundleError, SweepNight
from tasks.bundle.values import first_mistake, require_counts
from tasks.export.entry import ELSEWHERE
from tasks.measure.health import Health
from tasks.measure.plan import PlannedSession
from tasks.measure.prepare import ExportState
from tasks.measure.sweep_file import SweepSpec
from tasks.store.blob_store import BlobStore, TooLargeError

POLL_S = 5.0
"""How often each side reads new files, and the state of the other side's flow run."""
MAX_SILENCE_S = 4 * 3600.0
"""No export, build or wait takes longer: then the other side is regarded as killed, even if the server shows no end."""
_MAX_REPEAT_S = 60.0
_ETFARM = version("etfarm")
_Kind = TypeVar("_Kind", bound="Message")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Message(_Part):
    """A file with the version of this protocol and that of the etfarm that wrote it."""

    version: Literal[5] = 5
    etfarm: str = _ETFARM


class Start(_Part):
    """What a lab needs to measure on a probed device; `uses`, `exports` and `runners` are names in the store."""

    facts: Facts
    uses: list[tuple[Use, str]] = []
    runner_error: str | None = None
    sessions: list[PlannedSession] = []
    """A round, which replaces the matrix of the sweep and uses `exports` and `runners`."""
    exports: list[str] = []
    runners: list[str] = []


class Order(Message):
    """The work of a lab's run: to probe the devices (without `starts`), or to measure on them."""

    run: UUID
    """The flow run of the sweep: if it has ended, nothing more will be exported."""
    spec: SweepSpec
    sweep: SweepNight
    devices: list[DeviceSpec]
    starts: dict[str, Start] | None = None
    """By device."""
    pairs: list[tuple[str, str]] = []
    """The models and recipes to be exported; empty if each device has a round."""
    unloadable: dict[str, str] = {}
    health: dict[str, Health] = {}
    """By device. The farm keeps it; a lab forgets it after an order."""
    finish_by: AwareDatetime | None = None
    """When the lab must have ended; with a UTC offset, because the lab may be in another time zone."""
    clock_ahead_s: FiniteFloat | None = None
    """How far the farm's clock is ahead of the server's; None if unknown."""

    @field_serializer("devices")
    def _as_written(self, devices: list[DeviceSpec]) -> list[dict[str, Any]]:
        """Omit fields that are not set: an entry must not contain a field of another transport."""
        return [device.model_dump(mode="json", exclude_unset=True, exclude_none=True) for device in devices]


class Exported(_Part):
    """An export that has ended: its status, its key and that of its tapped program."""

    pair: tuple[str, str]
    state: ExportState
    note: str = ""
    """Why it is skipped or wrong."""
    keys: list[str] = []
    tapped_error: str | None = None


class Exports(Message):
    """The exports of a sweep that have ended so far."""

    ended: list[Exported]


class Result(Message):
    """The result of a device: its facts after a probe, its tally after a measurement, and its health."""

    facts: Facts = Facts()
    unusable: str | None = None
    tally: DeviceTally | None = None
    health: Health

    @model_validator(mode="after")
    def _has_possible_counts(self) -> Self:
        require_counts("facts", self.facts.model_dump())
        require_counts("tally.count", list(self.tally.counts.values()) if self.tally else [])
        return self


def write_shared(shared_files: BlobStore, name: str, message: Message) -> None:
    """Write `labs/<name>.json`; raises BundleError if the storage does not answer for a minute."""
    end = time.monotonic() + _MAX_REPEAT_S
    while True:
        try:
            return shared_files.write(f"labs/{name}.json", message.model_dump_json().encode())
        except BundleError:
            if time.monotonic() > end:
                raise
        time.sleep(1)


def read_shared(shared_files: BlobStore, name: str, kind: type[_Kind]) -> _Kind | None:
    """Return the content of `labs/<name>.json`; None if it does not exist.

    Raises BundleError if the storage does not answer, and InputError if the file is too large or not a valid message.
    """
    try:
        text = shared_files.read(f"labs/{name}.json")
    except TooLargeError as error:
        raise InputError(str(error)) from None
    return parse_message(kind, text) if text else None


def parse_message(kind: type[_Kind], text: bytes) -> _Kind:
    """Return a message, whose paths are of another machine; raises InputError if its version or a value is invalid."""
    try:
        return read_json(kind, text, context={ELSEWHERE: True})
    except ValidationError as error:
        name, mistake = kind.__name__.lower(), first_mistake(error)
        try:
            writer = str(from_json(text)["etfarm"])[:40]
        except (ValueError, TypeError, LookupError):
            writer = "of an older version"
        if writer == _ETFARM:
            raise InputError(f"the message `{name}` has an impossible value ({mistake})") from None
        raise InputError(
            f"the {name} was written by etfarm {writer} and read by etfarm {_ETFARM} "
            f"({mistake}); install the same version of etfarm at the sweep and in its labs"
        ) from None
