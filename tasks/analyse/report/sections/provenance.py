"""The report's section on where the figures come from: devices, conditions, runners, exported models, sessions."""

from dataclasses import dataclass

from tasks.analyse.report.cells import device_cell
from tasks.analyse.report.data import Answers, Row
from tasks.analyse.report.page import Block, Cell, Code, Column, Heading, Paragraph, Section, Table
from tasks.analyse.report.sections.provenance_sessions import sessions
from tasks.analyse.report.sections.provenance_waits import waits
from tasks.analyse.report.text import NOTHING, code, number, words

_GIB = 1 << 30
_MIB = 1 << 20
_HASH_DIGITS = 12


@dataclass(frozen=True)
class DeviceRow(Row):
    """A device as it was during the sweep; two rows if its facts changed."""

    query = "devices"
    device: str
    emulated: bool
    transport: str | None
    device_model: str | None
    soc: str | None
    cores: int | None
    memory_bytes: int | None
    sme2: bool | None
    os: str | None
    os_version: str | None
    build: str | None
    sessions: int


@dataclass(frozen=True)
class ConditionRow(Row):
    """The range of a device's conditions before or after its sessions."""

    query = "conditions"
    device: str
    moment: str
    min_temperature_c: float | None
    median_temperature_c: float | None
    max_temperature_c: float | None
    thermal_status: str | None
    min_battery_percent: float | None
    max_battery_percent: float | None
    median_load_1m: float | None
    max_load_1m: float | None
    governor: str | None
    min_frequency_mhz: float | None
    max_frequency_mhz: float | None


@dataclass(frozen=True)
class RunnerRow(Row):
    """A runner, the devices that it ran on and the variants and modes that it was used for."""

    query = "runners"
    runner_sha256: str
    source_sha256: str | None
    platform: str
    kind: str
    runner_version: str | None
    executorch_version: str | None
    compiler: str | None
    provenance: str | None
    devices: str
    used_for: str
    sessions: int


@dataclass(frozen=True)
class ModelRow(Row):
    """An exported model and how many of its operators were delegated."""

    query = "models"
    model: str
    precision: str
    seed: int | None
    pte_sha256: str
    pte_bytes: int | None
    delegated: int | None
    portable: int | None
    executorch_version: str | None
    torch_version: str | None
    transformers_version: str | None


def provenance(answers: Answers) -> Section:
    """The devices, conditions, runners and models of the sweep, and the sessions behind every figure."""
    tables = (
        ("Devices", Table(_DEVICE_COLUMNS, [_device(row) for row in answers.rows(DeviceRow)])),
        ("Conditions", Table(_CONDITION_COLUMNS, [_condition(row) for row in answers.rows(ConditionRow)])),
        ("Runners", Table(_RUNNER_COLUMNS, [_runner(row) for row in answers.rows(RunnerRow)])),
        ("Exported models", Table(_MODEL_COLUMNS, [_model(row) for row in answers.rows(ModelRow)])),
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


_DEVICE_COLUMNS = (
    Column("Device"),
    Column("Reached by"),
    Column("Model"),
    Column("Processor"),
    Column("Cores", "", True),
    Column("Memory", "GiB", True),
    Column("SME2"),
    Column("System"),
    Column("Build"),
    Column("Sessions", "", True),
)


def _device(row: DeviceRow) -> list[Cell]:
    return [
        device_cell(row.device, emulated=row.emulated),
        words(row.transport),
        words(row.device_model),
        words(row.soc),
        number(row.cores, 0),
        number(row.memory_bytes / _GIB if row.memory_bytes is not None else None, 1),
        NOTHING if row.sme2 is None else Cell("yes" if row.sme2 else "no"),
        words(" ".join(part for part in (row.os, row.os_version) if part) or None),
        code(row.build),
        number(row.sessions, 0),
    ]


_CONDITION_COLUMNS = (
    Column("Device"),
    Column("Moment", "", False, "before or after the sessions of the device"),
    Column("Temperature", "°C", True, "lowest, median, highest"),
    Column("Thermal status", "", False, "0 is not throttled"),
    Column("Battery", "%", True),
    Column("Load", "1 min", True, "median, highest"),
    Column("Governor"),
    Column("Clock", "MHz", True),
)


def _condition(row: ConditionRow) -> list[Cell]:
    return [
        Cell(row.device),
        Cell(row.moment),
        _range(row.min_temperature_c, row.median_temperature_c, row.max_temperature_c, digits=1),
        words(row.thermal_status),
        _range(row.min_battery_percent, row.max_battery_percent),
        _range(row.median_load_1m, row.max_load_1m, digits=2),
        words(row.governor),
        _range(row.min_frequency_mhz, row.max_frequency_mhz),
    ]


def _range(*values: float | None, digits: int = 0) -> Cell:
    """Different values with slashes between them, a dash if the device does not report them."""
    if values[0] is None:
        return NOTHING
    shown = list(dict.fromkeys(f"{value:.{digits}f}" for value in values if value is not None))
    return Cell(" / ".join(shown), sort=values[0])


_RUNNER_COLUMNS = (
    Column("Runner", "", False, "SHA-256 of its bundle, first digits"),
    Column("Source", "", False, "SHA-256 of its source, first digits"),
    Column("Platform"),
    Column("Kind"),
    Column("Version"),
    Column("ExecuTorch"),
    Column("Compiler", wraps=True),
    Column("Used for", wraps=True),
    Column("Devices", wraps=True),
    Column("Sessions", "", True),
)


def _runner(row: RunnerRow) -> list[Cell]:
    return [
        _hash(row.runner_sha256),
        _hash(row.source_sha256),
        Cell(row.platform),
        Cell(f"{row.kind}: {row.provenance}" if row.provenance else row.kind),
        words(row.runner_version),
        words(row.executorch_version),
        words(row.compiler),
        Cell(row.used_for),
        Cell(row.devices),
        number(row.sessions, 0),
    ]


_MODEL_COLUMNS = (
    Column("Model"),
    Column("Precision"),
    Column(".pte", "", False, "SHA-256 of the exported file, first digits"),
    Column("Size", "MiB", True),
    Column("Delegated", "", True, "operators of the graph that were delegated"),
    Column("Portable", "", True),
    Column("Seed", "", True),
    Column("ExecuTorch"),
    Column("torch"),
    Column("transformers"),
)


def _model(row: ModelRow) -> list[Cell]:
    return [
        code(row.model),
        Cell(row.precision),
        _hash(row.pte_sha256),
        number(row.pte_bytes / _MIB if row.pte_bytes is not None else None, 2),
        number(row.delegated, 0),
        number(row.portable, 0),
        number(row.seed, 0),
        words(row.executorch_version),
        words(row.torch_version),
        words(row.transformers_version),
    ]


def _hash(sha256: str | None) -> Cell:
    return code(sha256 and sha256[:_HASH_DIGITS])
