"""What a farm and a lab tell each other. Each side replaces its message as a whole whenever something changed."""

from typing import Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError, field_serializer

from devices.errors import InputError
from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.device.job import DeviceTally
from tasks.bundle.cell import Mode, Variant
from tasks.bundle.record import SweepNight
from tasks.bundle.values import first_mistake
from tasks.measure.health import Health
from tasks.measure.plan import PlannedSession
from tasks.measure.spec import SweepSpec
from tasks.prepare.export.entry import ELSEWHERE

POLL_S = 1.0
"""How often each side looks for a new message."""
BEAT_S = 15.0
"""A message changes at least this often while its side lives."""
SILENT_S = 180.0
"""Without a new message for so long, the other side is regarded as gone."""
_Kind = TypeVar("_Kind", bound=BaseModel)


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PairOrder(_Message):
    """An export that has ended: the keys of shared exports, or why there is none."""

    model: str
    precision: str
    key: str | None = None
    tapped_key: str | None = None
    tapped_error: str | None = None
    skipped: str | None = None
    error: str | None = None


class RunnerOrder(_Message):
    """The runners of a platform, by the names of shared runners; `error` is why one could not be built."""

    uses: list[tuple[Variant, Mode, str]] = []
    error: str | None = None


class RoundOrder(_Message):
    """Sessions to run instead of the matrix of the sweep."""

    sessions: list[PlannedSession]
    exports: list[str]
    """The keys of the exports that are compared."""
    runners: list[str]


class Order(_Message):
    """What a lab has to measure, as far as it is known; the newest order replaces all before it."""

    version: Literal[1] = 1
    beat: int = 0
    """Changes while the farm lives, even if nothing else does."""
    site: str
    spec: SweepSpec
    sweep: SweepNight
    devices: list[DeviceSpec]
    unloadable: dict[str, str] = {}
    health: dict[str, Health] = {}
    """Of each device, which the farm knows: a lab keeps none from one order to the next."""
    finish_by: AwareDatetime | None = None
    """When the lab must have ended: a moment, because a lab may be in another time zone than the farm."""
    exports: list[PairOrder] = []
    runners: dict[str, RunnerOrder] = {}
    rounds: dict[str, RoundOrder] = {}
    """By device; empty for the matrix of the sweep."""

    @field_serializer("devices")
    def _as_written(self, devices: list[DeviceSpec]) -> list[dict[str, Any]]:
        """Leave out what is not set: an entry may not even name a field of another transport."""
        return [device.model_dump(mode="json", exclude_unset=True, exclude_none=True) for device in devices]


class ProbeReport(_Message):
    """What the lab found out about a device."""

    facts: Facts
    unusable: str | None = None


class StepReport(_Message):
    """The progress of a device: sessions that have ended, of how many, and what it does now."""

    done: int
    total: int
    doing: str


class Report(_Message):
    """What a lab has found so far."""

    version: Literal[1] = 1
    beat: int = 0
    probes: dict[str, ProbeReport] = {}
    steps: dict[str, StepReport] = {}
    tallies: dict[str, DeviceTally] = {}
    """Of the devices that have ended."""
    health: dict[str, Health] = {}
    """Of these devices, after what happened to them."""


def order_text(order: Order) -> bytes:
    """Return an order as JSON."""
    return order.model_dump_json().encode()


def parse_order(text: bytes) -> Order:
    """Return the order; files that it names are elsewhere. Raises InputError for one of another version."""
    return _parsed(Order, text, {ELSEWHERE: True})


def parse_report(text: bytes) -> Report:
    """Return the report; raises InputError for one of another version."""
    return _parsed(Report, text, {})


def _parsed(kind: type[_Kind], text: bytes, context: dict[str, Any]) -> _Kind:
    try:
        return kind.model_validate_json(text, context=context)
    except ValidationError as error:
        cause = first_mistake(error)
        raise InputError(
            f"the {kind.__name__.lower()} is of another version of etfarm ({cause}); update both sides"
        ) from None
