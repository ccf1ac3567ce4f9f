"""What a farm and a lab tell each other: small files in the store of the bundles, each written once."""

from dataclasses import dataclass, field
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
from tasks.bundle.cell import Mode, Variant
from tasks.bundle.record import SweepNight
from tasks.bundle.values import first_mistake, require_counts
from tasks.export.entry import ELSEWHERE
from tasks.measure.health import Health
from tasks.measure.plan import PlannedSession
from tasks.measure.spec import SweepSpec
from tasks.store.blob_store import BlobStore, TooLargeError

POLL_S = 2.0
"""How often each side looks for new messages."""
ASK_S = 5.0
"""How often each side asks the server whether the other one lives."""
LONGEST_S = 4 * 3600.0
"""No export, build or wait takes longer: bounds the wait for a side that was killed if no server ever tells."""
_ETFARM = version("etfarm")
_Kind = TypeVar("_Kind", bound="Message")


class Message(BaseModel):
    """What all messages have: the version of this contract, and the etfarm that wrote the message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[2] = 2
    etfarm: str = _ETFARM


class Order(Message):
    """What a lab has to measure."""

    run: UUID
    """The flow run of the sweep: if it has ended, nothing more will be exported or built."""
    spec: SweepSpec
    sweep: SweepNight
    devices: list[DeviceSpec]
    pairs: list[tuple[str, str]] = []
    """The models and recipes whose exports follow; none if each device gets a round."""
    unloadable: dict[str, str] = {}
    health: dict[str, Health] = {}
    """Of each device, which the farm knows: a lab keeps none from one order to the next."""
    finish_by: AwareDatetime | None = None
    """When the lab must have ended: a moment, because a lab may be in another time zone than the farm."""
    clock_ahead_s: FiniteFloat | None = None
    """How far the farm's clock is ahead of the server's."""

    @field_serializer("devices")
    def _as_written(self, devices: list[DeviceSpec]) -> list[dict[str, Any]]:
        """Leave out what is not set: an entry may not even name a field of another transport."""
        return [device.model_dump(mode="json", exclude_unset=True, exclude_none=True) for device in devices]


class Exported(Message):
    """An export that has ended: its key and that of its tapped program, or why there is none."""

    pair: tuple[str, str]
    keys: list[str] = []
    tapped_error: str | None = None
    skipped: str | None = None
    error: str | None = None


class Probed(Message):
    """What the lab found out about a device."""

    facts: Facts
    unusable: str | None = None

    @model_validator(mode="after")
    def _has_possible_counts(self) -> Self:
        require_counts("facts", self.facts.model_dump())
        return self


class Admitted(Message):
    """The farm's answer to a probe: the names of shared runners, and why one could not be built."""

    uses: list[tuple[Variant, Mode, str]] = []
    error: str | None = None
    refused: str | None = None
    sessions: list[PlannedSession] = []
    """To run instead of the matrix of the sweep, with these exports and runners."""
    exports: list[str] = []
    runners: list[str] = []


class Ended(Message):
    """How a device ended, and its health after what happened to it."""

    tally: DeviceTally
    health: Health

    @model_validator(mode="after")
    def _has_possible_counts(self) -> Self:
        require_counts("tally.count", list(self.tally.counts.values()))
        return self


def parsed(kind: type[_Kind], text: bytes) -> _Kind:
    """Return a message; files that it names are elsewhere. Raises InputError if it is of another version or wrong."""
    try:
        return read_json(kind, text, context={ELSEWHERE: True})
    except ValidationError as error:
        name, writer, mistake = kind.__name__.lower(), _writer_of(text), first_mistake(error)
        if writer == _ETFARM:
            raise InputError(f"the message `{name}` has an impossible value ({mistake})") from None
        raise InputError(
            f"the {name} was written by etfarm {writer} and read by etfarm {_ETFARM} "
            f"({mistake}); install the same version of etfarm at the sweep and in its labs"
        ) from None


def _writer_of(text: bytes) -> str:
    """Return the version of etfarm that a message names."""
    try:
        return str(from_json(text)["etfarm"])[:40]
    except (ValueError, TypeError, LookupError):
        return "of an older version"


def run_name(order: str) -> str:
    """Return the name of the flow run of an order: `nightly-2026-11-01 in berlin`, with a number from the second on."""
    sweep_id, run = order.partition("/")[0], order.rpartition("/")[2]
    site, _, number = run.rpartition("-")
    return f"{sweep_id} in {site}" + (f", start {number}" if number != "1" else "")


@dataclass
class Mailbox:
    """Messages by name, such as `probes/pixel-1`, each read once.

    Methods raise BundleError if the storage does not answer.
    """

    shelf: BlobStore
    folder: str
    _read: set[str] = field(default_factory=set)

    def write(self, name: str, message: Message) -> None:
        """Write a message, once."""
        self.shelf.write(f"{self.folder}/{name}.json", message.model_dump_json().encode())

    def unread(self, *folders: str) -> list[str]:
        """Return the names of the messages in these folders that were not read before."""
        files = (f"{folder}/{file}" for folder in folders for file in self.shelf.names(f"{self.folder}/{folder}"))
        return sorted({file.removesuffix(".json") for file in files} - self._read)

    def read(self, name: str, kind: type[_Kind]) -> _Kind | None:
        """Return a message, which then counts as read; None if there is none.

        Raises InputError if it is too large, of another version of etfarm, or has an impossible value.
        """
        try:
            text = self.shelf.read(f"{self.folder}/{name}.json")
        except TooLargeError as error:
            self._read.add(name)
            raise InputError(str(error)) from None
        if not text:
            return None
        self._read.add(name)
        return parsed(kind, text)

    def remove(self) -> None:
        """Remove all messages."""
        self.shelf.remove(self.folder)
