"""The report's section on where the figures come from: devices, conditions, runners, exported models, sessions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

from tasks.pages.report.page import Block, Heading, Paragraph, Points, Section
from tasks.pages.report.sections.provenance_sessions import sessions
from tasks.results.cells import Device
from tasks.results.reader import Answers, Row
from tasks.results.table import GIB, MIB, NOTHING, Cell, Name, Number, Words, cells_of, table_of
from tasks.results.text import Code, Text, counted, duration, joined, separated

_HASH_DIGITS = 12


@dataclass(frozen=True)
class DeviceRow(Row):
    """A device as it was during the sweep; two rows if its facts changed."""

    query = "devices"
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
    sessions: Annotated[int, Number("Sessions")]

    @cells_of("sme2")
    def _sme2_cell(self, cell: Cell) -> Cell:
        return cell if self.sme2 is None else Cell("yes" if self.sme2 else "no")


@dataclass(frozen=True, kw_only=True)
class Range(Number):
    """A figure of a device's conditions and larger ones of the fields `up_to`."""

    up_to: tuple[str, ...]

    def cell_in(self, row: Any, name: str) -> Cell:
        """Different values with slashes between them, a dash if the device does not report them."""
        values = [getattr(row, field) for field in (name, *self.up_to)]
        if values[0] is None:
            return NOTHING
        shown = dict.fromkeys(f"{value:.{self.digits}f}" for value in values if value is not None)
        return Cell(" / ".join(shown), sort=values[0])


@dataclass(frozen=True)
class ConditionRow(Row):
    """The range of a device's conditions before or after its sessions."""

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
class RunnerRow(Row):
    """A runner, the devices that it ran on and the variants and modes that it was used for."""

    query = "runners"
    runner_sha256: Annotated[str, Name("Runner", meaning="SHA-256 of its bundle, first digits", first=_HASH_DIGITS)]
    source_sha256: Annotated[
        str | None, Name("Source", meaning="SHA-256 of its source, first digits", first=_HASH_DIGITS)
    ]
    platform: Annotated[str, Words("Platform")]
    kind: Annotated[str, Words("Kind")]
    runner_version: Annotated[str | None, Words("Version")]
    executorch_version: Annotated[str | None, Words("ExecuTorch")]
    compiler: Annotated[str | None, Words("Compiler", wraps=True)]
    used_for: Annotated[str, Words("Used for", wraps=True)]
    devices: Annotated[str, Words("Devices", wraps=True)]
    sessions: Annotated[int, Number("Sessions")]


@dataclass(frozen=True)
class ModelRow(Row):
    """An exported model and how many of its operators were delegated."""

    query = "models"
    model: Annotated[str, Name("Model")]
    precision: Annotated[str, Words("Precision")]
    pte_sha256: Annotated[str, Name(".pte", meaning="SHA-256 of the exported file, first digits", first=_HASH_DIGITS)]
    pte_bytes: Annotated[int | None, Number("Size", "MiB", digits=2, scale=1 / MIB)]
    delegated: Annotated[int | None, Number("Delegated", "", "operators of the graph that were delegated")]
    portable: Annotated[int | None, Number("Portable")]
    seed: Annotated[int | None, Number("Seed")]
    executorch_version: Annotated[str | None, Words("ExecuTorch")]
    torch_version: Annotated[str | None, Words("torch")]
    transformers_version: Annotated[str | None, Words("transformers")]


@dataclass(frozen=True)
class WaitRow(Row):
    """A limit that a device waited for, and the device's time for all of them."""

    query = "waits"
    device: str
    limit_name: str
    waited_s: float
    waited_sessions: int
    worst: float | None
    bound: float
    device_waited_s: float


def provenance(answers: Answers) -> Section:
    """The devices, conditions, runners and models of the sweep, and the sessions behind every figure."""
    tables = (
        ("Devices", table_of(answers.rows(DeviceRow))),
        ("Conditions", table_of(answers.rows(ConditionRow))),
        ("Runners", table_of(answers.rows(RunnerRow))),
        ("Exported models", table_of(answers.rows(ModelRow))),
    )
    blocks: list[Block] = [block for title, table in tables if table.rows for block in (Heading(title), table)]
    if waited := waits_in_words(answers):
        blocks += [Heading("Waits for the limits"), Points(waited)]
    bundle = Code(f"bundles/{answers.sweep.sweep_id}/<session>")
    explained = (
        "Every figure above is computed from the successful sessions of its cell. A session's bundle is the folder ",
        bundle,
        " in the var folder; its session.json holds command, versions, hashes and conditions.",
    )
    blocks += [
        Heading("Sessions"),
        Paragraph(explained),
        *sessions(answers, {row.device: row.without_times for row in answers.rows(DeviceRow)}),
    ]
    return Section("provenance", "Where the figures come from", blocks)


def conditions_in_words(answers: Answers) -> Iterator[Text]:
    """A line for each device and moment, with what the table of conditions shows of them."""
    for row in answers.rows(ConditionRow):
        table = table_of([row], without=("device", "moment"))
        (cells,) = table.rows
        known = [
            f"{column.title.lower()}{f' ({column.unit})' if column.unit else ''} {cell.text}"
            for column, cell in zip(table.columns, cells, strict=True)
            if cell is not NOTHING
        ]
        if known:
            yield f"{row.device} {row.moment} its sessions: {', '.join(known)}."


def waits_in_words(answers: Answers) -> list[Text]:
    """A line for each device that waited more than a minute in all."""
    devices = [list(rows) for _, rows in groupby(answers.rows(WaitRow), key=lambda row: row.device)]
    return [_waits_of(rows) for rows in devices]


def _waits_of(rows: list[WaitRow]) -> Text:
    first = rows[0]
    waited = f"{first.device} waited {duration(first.device_waited_s)}: "
    return joined(waited, separated([_wait(row) for row in rows]), ".")


def _wait(row: WaitRow) -> Text:
    towards = "down" if row.limit_name.startswith("min_") else "up"
    worst = "" if row.worst is None else f", {towards} to {row.worst:g}"
    before = f"{duration(row.waited_s)} before {counted(row.waited_sessions, 'session')}"
    return (Code(row.limit_name), f" {before} (limit {row.bound:g}{worst})")
