"""The report's section on where the figures come from: devices, conditions, runners, exported models, sessions."""

from dataclasses import dataclass
from typing import Annotated, Any

from tasks.analyse.report.cells import Device
from tasks.analyse.report.columns import GIB, MIB, Name, Number, Words, cells_of, table_of
from tasks.analyse.report.data import Answers, Row
from tasks.analyse.report.page import Block, Cell, Code, Heading, Paragraph, Section
from tasks.analyse.report.sections.provenance_sessions import sessions
from tasks.analyse.report.sections.provenance_waits import waits
from tasks.analyse.report.text import NOTHING

_HASH_DIGITS = 12


@dataclass(frozen=True)
class DeviceRow(Row):
    """A device as it was during the sweep; two rows if its facts changed."""

    query = "devices"
    device: Annotated[str, Device("Device")]
    emulated: bool
    transport: Annotated[str | None, Words("Reached by")]
    device_model: Annotated[str | None, Words("Model")]
    soc: Annotated[str | None, Words("Processor")]
    cores: Annotated[int | None, Number("Cores")]
    memory_bytes: Annotated[int | None, Number("Memory", "GiB", digits=1, scale=1 / GIB)]
    sme2: Annotated[bool | None, Words("SME2")]
    os: Annotated[str | None, Words("System")]
    os_version: str | None
    build: Annotated[str | None, Name("Build")]
    sessions: Annotated[int, Number("Sessions")]

    @cells_of("sme2")
    def _sme2_cell(self, cell: Cell) -> Cell:
        return cell if self.sme2 is None else Cell("yes" if self.sme2 else "no")

    @cells_of("os")
    def _system_cell(self, _cell: Cell) -> Cell:
        system = " ".join(part for part in (self.os, self.os_version) if part)
        return Cell(system) if system else NOTHING


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
    device: Annotated[str, Words("Device")]
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
    provenance: str | None
    runner_version: Annotated[str | None, Words("Version")]
    executorch_version: Annotated[str | None, Words("ExecuTorch")]
    compiler: Annotated[str | None, Words("Compiler", wraps=True)]
    used_for: Annotated[str, Words("Used for", wraps=True)]
    devices: Annotated[str, Words("Devices", wraps=True)]
    sessions: Annotated[int, Number("Sessions")]

    @cells_of("kind")
    def _kind_cell(self, cell: Cell) -> Cell:
        return Cell(f"{self.kind}: {self.provenance}") if self.provenance else cell


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


def provenance(answers: Answers) -> Section:
    """The devices, conditions, runners and models of the sweep, and the sessions behind every figure."""
    tables = (
        ("Devices", table_of(answers.rows(DeviceRow))),
        ("Conditions", table_of(answers.rows(ConditionRow))),
        ("Runners", table_of(answers.rows(RunnerRow))),
        ("Exported models", table_of(answers.rows(ModelRow))),
    )
    blocks: list[Block] = [block for title, table in tables if table.rows for block in (Heading(title), table)]
    blocks += waits(answers)
    bundle = Code(f"bundles/{answers.sweep.sweep_id}/<session>")
    explained = (
        "Every figure above is computed from the successful sessions of its cell. A session's bundle is the folder ",
        bundle,
        " in the var folder; its session.json holds command, versions, hashes and conditions.",
    )
    blocks += [Heading("Sessions"), Paragraph(explained), *sessions(answers)]
    return Section("provenance", "Where the figures come from", blocks)
