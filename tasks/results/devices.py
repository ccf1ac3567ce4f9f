"""Devices: facts, nights, conditions, and waits for limits."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Annotated, Any

from tasks.results.cells import Device, Night
from tasks.results.reader import Answers, Reader
from tasks.results.table import GIB, NOTHING, Cell, Name, Number, Percent, Row, Words, build_table
from tasks.results.text import Code, Text, counted, duration, joined, separated


@dataclass(frozen=True)
class DeviceRow(Row):
    """A device in a sweep (two rows if its facts changed during it), or in its newest sweep for a list of the farm."""

    query = "devices"
    naming = ("device",)
    device: Annotated[str, Device("Device")]
    without_times: str | None
    transport: Annotated[str | None, Words("Reached by")]
    device_model: Annotated[str | None, Words("Model")]
    soc: Annotated[str | None, Words("Processor")]
    cores: Annotated[int | None, Number("Cores")]
    memory_bytes: Annotated[int | None, Number("Memory", "GiB", digits=1, scale=1 / GIB)]
    sme2: Annotated[bool | None, Words("SME2")]
    system: Annotated[str | None, Words("System")]
    build: Annotated[str | None, Name("Build")]
    night: Annotated[date | None, Night("Newest night", meaning="the sessions are those of all its sweeps")]
    sessions: Annotated[int, Number("Sessions")]
    """Of the sweep; in a list of the farm, of all sweeps of the night, as are `succeeded` and `waited_s`."""
    succeeded: Annotated[int, Number("Succeeded")]
    waited_s: Annotated[float, Number("Waited", "min", "for its conditions, in that night", scale=1 / 60)]
    noise: Annotated[float | None, Percent("Noise", "width of the interval where one content was measured twice")]

    def sme2_cell(self, cell: Cell) -> Cell:
        return cell if self.sme2 is None else Cell("yes" if self.sme2 else "no")


ONLY_OF_FARM_DEVICES = ("night", "succeeded", "waited_s", "noise")
NOT_OF_FARM_DEVICES = ("cores", "memory_bytes")


def read_devices(reader: Reader) -> list[DeviceRow]:
    """Return every device of the farm; `Answers.rows(DeviceRow)` returns those of a sweep."""
    return reader.rows(DeviceRow, {"sweep_id": None})


@dataclass(frozen=True, kw_only=True)
class Range(Number):
    """A condition and larger ones of the fields `up_to`: `31.0 / 33.5`, equal ones once; a dash if not reported."""

    up_to: tuple[str, ...]

    def cell_in(self, row: Any, name: str) -> Cell:
        values = [getattr(row, field) for field in (name, *self.up_to)]
        if values[0] is None:
            return NOTHING
        texts = dict.fromkeys(f"{value:.{self.digits}f}" for value in values if value is not None)
        return Cell(" / ".join(texts), sort=values[0])


@dataclass(frozen=True)
class ConditionRow(Row):
    query = "conditions"
    device: Annotated[str, Device("Device")]
    without_times: str | None
    moment: Annotated[str, Words("Moment", meaning="before or after the sessions of the device")]
    min_temperature_c: Annotated[
        float | None,
        Range(
            "Temperature",
            "°C",
            "lowest, median, highest",
            up_to=("median_temperature_c", "max_temperature_c"),
            digits=1,
        ),
    ]
    median_temperature_c: float | None
    max_temperature_c: float | None
    thermal_status: Annotated[str | None, Words("Thermal status", meaning="0 is not throttled")]
    min_battery_percent: Annotated[float | None, Range("Battery", "%", up_to=("max_battery_percent",))]
    max_battery_percent: float | None
    median_load_1m: Annotated[float | None, Range("Load", "1 min", "median, highest", up_to=("max_load_1m",), digits=2)]
    max_load_1m: float | None
    governor: Annotated[str | None, Words("Governor")]
    min_frequency_mhz: Annotated[float | None, Range("Clock", "MHz", up_to=("max_frequency_mhz",))]
    max_frequency_mhz: float | None


@dataclass(frozen=True)
class WaitRow(Row):
    """A limit that a device waited for, the worst value it had, and the wait for all limits (`device_waited_s`)."""

    query = "waits"
    device: str
    limit_name: str
    waited_s: float
    waited_sessions: int
    worst: float | None
    bound: float
    device_waited_s: float


def conditions_in_words(answers: Answers) -> Iterator[Text]:
    for row in answers.rows(ConditionRow):
        table = build_table([row], without=("device", "moment"))
        (cells,) = table.rows
        conditions = [
            f"{column.title.lower()}{f' ({column.unit})' if column.unit else ''} {cell.text}"
            for column, cell in zip(table.columns, cells, strict=True)
            if cell is not NOTHING
        ]
        if conditions:
            yield f"{row.device} {row.moment} its sessions: {', '.join(conditions)}."


def waits_in_words(answers: Answers) -> list[Text]:
    """Return a line for each device that waited more than a minute in all, the longest wait first."""
    lines = []
    for device, rows in groupby(answers.rows(WaitRow), key=lambda row: row.device):
        waits: list[Text] = []
        total_s = 0.0
        for row in rows:
            towards = "down" if row.limit_name.startswith("min_") else "up"
            worst = "" if row.worst is None else f", {towards} to {row.worst:g}"
            before = f"{duration(row.waited_s)} before {counted(row.waited_sessions, 'session')}"
            waits.append((Code(row.limit_name), f" {before} (limit {row.bound:g}{worst})"))
            total_s = row.device_waited_s
        lines.append(joined(f"{device} waited {duration(total_s)}: ", separated(waits), "."))
    return lines


@dataclass(frozen=True)
class DeviceNightRow(Row):
    query = "device_nights"
    device: str
    night: Annotated[date, Night("Night")]
    sessions: Annotated[int, Number("Sessions")]
    succeeded: Annotated[int, Number("Succeeded")]
    failed: Annotated[int, Number("Failed", tone=lambda count: "bad" if count else "quiet")]
    invalid: Annotated[int, Number("Invalid", tone=lambda count: "flag" if count else "quiet")]
    busy_hours: Annotated[float | None, Number("Busy", "h", "sum of the durations of its sessions", digits=2)]
    max_temperature_c: Annotated[float | None, Number("Hottest", "°C", "before or after a session", digits=1)]
    build: Annotated[str | None, Name("Build")]


@dataclass(frozen=True)
class DeviceBuildRow(Row):
    """The newest change of a device's build, within its last 14 nights: its series begin again with it."""

    query = "device_builds"
    device: str
    night_before: date
    since: date
    build_before: str
    build: str

    @property
    def text(self) -> Text:
        nights = f"{self.night_before} {self.since}"
        command = Code(f"etfarm compare {nights} --device {shlex.quote(self.device)}")
        change = f"another build since {self.since} ({self.build_before} \u2192 {self.build})"
        return (f"{change}: its series begin again; both builds: ", command)


def noise_lines(reader: Reader, *, sweep_id: str | None = None, night: str | None = None) -> list[str]:
    """Return a line for each device of a sweep or of a night that was busy, and for each whose noise has doubled."""
    busy = [
        f"{device} was busy before its sessions: load {load:.1f} on {cores} cores; measure again when it is idle"
        for device, load, cores in reader.tuples("busy_devices", sweep_id=sweep_id, night=night)
    ]
    return busy + [
        f"{device}: noise {100 * noise:.1f} %, {change:.1f} times that of {nights} earlier nights; check what else "
        "runs on it, its temperature and its power before you trust small changes"
        for device, noise, change, nights in reader.tuples("noisy_devices", sweep_id=sweep_id, night=night)
    ]
