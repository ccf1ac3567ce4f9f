"""The report's section on where its figures come from: devices, conditions, runners, models, sessions."""

from itertools import groupby
from typing import Any

from tasks.report.cells import device_cell, variant_cell
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Code, Column, Fold, Heading, Paragraph, Section, Table
from tasks.report.text import DASH, NOTHING, code, counted, number, words

_GIB = 1 << 30
_MIB = 1 << 20


def provenance(answers: Answers) -> Section:
    """What was measured, with what, on what, under which conditions, and the session behind every figure."""
    blocks: list[Block] = [Heading("Devices"), Table(_DEVICE_COLUMNS, [_device(row) for row in answers["devices"]])]
    if conditions := answers["conditions"]:
        blocks += [Heading("Conditions"), Table(_CONDITION_COLUMNS, [_condition(row) for row in conditions])]
    if runners := answers["runners"]:
        blocks += [Heading("Runners"), Table(_RUNNER_COLUMNS, [_runner(row) for row in runners])]
    if models := answers["models"]:
        blocks += [Heading("Exported models"), Table(_MODEL_COLUMNS, [_model(row, answers) for row in models])]
    blocks += [
        Heading("Sessions"),
        Paragraph(
            (
                "Every figure above is made from the sessions of its cell that succeeded. A session's bundle is the "
                "folder ",
                Code(f"bundles/{answers.sweep['sweep_id']}/<session>"),
                " of the var folder; its session.json holds the command, versions, hashes and conditions.",
            )
        ),
        *_sessions(answers["sessions"]),
    ]
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


def _device(row: Row) -> list[Cell]:
    system = " ".join(str(part) for part in (row["os"], row["os_version"]) if part) or None
    memory = row["memory_bytes"]
    return [
        device_cell(row),
        words(row["transport"]),
        words(row["device_model"]),
        words(row["soc"]),
        number(row["cores"], 0),
        number(memory / _GIB if memory is not None else None, 1),
        NOTHING if row["sme2"] is None else Cell("yes" if row["sme2"] else "no"),
        words(system),
        code(row["build"]),
        number(row["sessions"], 0),
    ]


_CONDITION_COLUMNS = (
    Column("Device"),
    Column("Moment", "", False, "before or after the device's sessions"),
    Column("Temperature", "°C", True, "lowest, median, highest"),
    Column("Thermal status", "", False, "0 is not throttled"),
    Column("Battery", "%", True),
    Column("Load", "1 min", True, "median, highest"),
    Column("Governor"),
    Column("Clock", "MHz", True),
)


def _condition(row: Row) -> list[Cell]:
    return [
        Cell(row["device"]),
        Cell(row["moment"]),
        _range(row["min_temperature_c"], row["median_temperature_c"], row["max_temperature_c"], digits=1),
        words(row["thermal_status"]),
        _range(row["min_battery_percent"], row["max_battery_percent"]),
        _range(row["median_load_1m"], row["max_load_1m"], digits=2),
        words(row["governor"]),
        _range(row["min_frequency_mhz"], row["max_frequency_mhz"]),
    ]


def _range(*values: float | None, digits: int = 0) -> Cell:
    """Different values with slashes between them, a dash where the device does not say."""
    if values[0] is None:
        return NOTHING
    shown = list(dict.fromkeys(f"{value:.{digits}f}" for value in values if value is not None))
    return Cell(" / ".join(shown), sort=values[0])


_RUNNER_COLUMNS = (
    Column("Runner", "", False, "SHA-256 of its bundle, first digits"),
    Column("Source", "", False, "of its source"),
    Column("Platform"),
    Column("Kind"),
    Column("Version"),
    Column("ExecuTorch"),
    Column("Compiler", wraps=True),
    Column("Used for", wraps=True),
    Column("Devices", wraps=True),
    Column("Sessions", "", True),
)


def _runner(row: Row) -> list[Cell]:
    kind = f"{row['kind']}: {row['provenance']}" if row["provenance"] else row["kind"]
    return [
        _hash(row["runner_sha256"]),
        _hash(row["source_sha256"]),
        Cell(row["platform"]),
        Cell(kind),
        words(row["runner_version"]),
        words(row["executorch_version"]),
        words(row["compiler"]),
        Cell(row["used_for"]),
        Cell(row["devices"]),
        number(row["sessions"], 0),
    ]


_MODEL_COLUMNS = (
    Column("Model"),
    Column("Precision"),
    Column(".pte", "", False, "SHA-256 of the exported file, first digits"),
    Column("Size", "MiB", True),
    Column("Delegated", "", True, "operators of the graph that went to the delegate"),
    Column("Portable", "", True),
    Column("Seed", "", True),
    Column("ExecuTorch"),
    Column("torch"),
    Column("transformers"),
)


def _model(row: Row, answers: Answers) -> list[Cell]:
    counts = next((entry for entry in answers["delegation"] if entry["pte_sha256"] == row["pte_sha256"]), None)
    size = row["pte_bytes"]
    return [
        code(row["model"]),
        Cell(row["precision"]),
        _hash(row["pte_sha256"]),
        number(size / _MIB if size is not None else None, 2),
        number(counts["delegated"] if counts else None, 0),
        number(counts["portable"] if counts else None, 0),
        number(row["seed"], 0),
        words(row["executorch_version"]),
        words(row["torch_version"]),
        words(row["transformers_version"]),
    ]


_SESSION_COLUMNS = (
    Column("Session"),
    Column("Model"),
    Column("Precision"),
    Column("SME2"),
    Column("Threads", "", True),
    Column("Mode"),
    Column("Attempt", "", True),
    Column("End"),
    Column("Started", "UTC"),
    Column("Median", "ms", True),
    Column("Temperature", "°C", True, "before → after, as are battery and load"),
    Column("Battery", "%", True),
    Column("Load", "1 min", True),
)


def _sessions(rows: list[Row]) -> list[Block]:
    folds: list[Block] = []
    for device, group in groupby(rows, key=lambda row: row["device"]):
        sessions = [_session(row) for row in group]
        title = f"{device}: {counted(len(sessions), 'session')}"
        folds.append(Fold(title, [Table(_SESSION_COLUMNS, sessions)], in_markdown=False))
    return folds


def _session(row: Row) -> list[Cell]:
    return [
        code(row["session_id"]),
        code(row["model"]),
        Cell(row["precision"]),
        variant_cell(row["variant"]),
        number(row["threads"], 0),
        Cell(row["mode"]),
        number(row["attempt"], 0),
        Cell(row["status"], tone="bad" if row["status"] in ("failed", "invalid") else ""),
        words(f"{row['started_at']:%Y-%m-%d %H:%M:%S}" if row["started_at"] else None),
        number(row["median_ms"], 3),
        _change(row["temperature_before_c"], row["temperature_after_c"], 1),
        _change(row["battery_before_percent"], row["battery_after_percent"], 0),
        _change(row["load_before_1m"], row["load_after_1m"], 2),
    ]


def _change(before: float | None, after: float | None, digits: int) -> Cell:
    if before is None and after is None:
        return NOTHING
    shown = [DASH if value is None else f"{value:.{digits}f}" for value in (before, after)]
    return Cell(" → ".join(shown), sort=after if after is not None else before)


def _hash(sha256: Any) -> Cell:
    return NOTHING if sha256 is None else code(str(sha256)[:12])
