"""Convert one bundle or loose ETDump to rows of the warehouse, by table, before they get ids."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.bundle import RECORD, BundleError, SessionRecord, bundle_sha256, read_bundle
from tasks.etdump.consistent import contradiction
from tasks.etdump.reader import Etdump, read_etdump
from tasks.etdump.tree import Runs, runs_of
from tasks.export.recipes import backend_of
from tasks.files import sha256_of
from tasks.load.kernels import kernels_of
from tasks.load.layers import layers_of
from tasks.load.sources import Sources, read_sources

Row = dict[str, Any]
LOOSE_SWEEP = "loose"
_SESSION_ID = re.compile(r"[0-9a-f]{16}(?![0-9a-f])")


class LoadError(FarmError):
    """A bundle or an ETDump cannot be loaded; the text is one sentence."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One session's rows; `sweep`, `device`, `model`, `runner` and `series` may already be in the warehouse."""

    path: Path
    sha256: str
    """Hash of session.json or of the loose ETDump, which is its key in the ledger."""
    sweep: Row
    device: Row
    model: Row
    session: Row
    runner: Row | None = None
    series: Row | None = None
    operators: list[Row] = field(default_factory=list)
    """Rows of model_operator."""
    details: dict[str, list[Row]] = field(default_factory=dict)
    """Rows of the tables with several rows per session, by table."""
    runs: Runs | None = None
    sources: Sources | None = None

    @property
    def is_loose(self) -> bool:
        """Return whether this is an ETDump without a bundle."""
        return bool(self.session["etdump_sha256"] == self.sha256)

    @property
    def events(self) -> int:
        """Number of events to load."""
        return len(self.runs.node) if self.runs else 0


def rows_of_bundle(folder: Path) -> Rows:
    """Check a bundle against its hashes and return its rows; a session that did not succeed has no runs.

    Raises BundleError, EtdumpError or LoadError, each with one sentence.
    """
    record = read_bundle(folder)
    sha256 = bundle_sha256(folder)
    succeeded = record.status == "succeeded"
    if succeeded and record.mode == "timing" and "model.etdump" not in record.files:
        raise BundleError(f"{folder}: model.etdump is missing although the session succeeded; restore the bundle")
    # The program of the mode numerics is another one: its events say nothing about the model's.
    has_events = succeeded and "model.etdump" in record.files and record.mode != "numerics"
    runs = _read_runs(folder / "model.etdump", record) if has_events else None
    try:
        return Rows(
            path=folder,
            sha256=sha256,
            sweep={**record.sweep.model_dump(exclude={"source"}), "night": date.fromisoformat(record.sweep.night)},
            device=_device(record),
            model=_model(record),
            runner=_runner(record),
            series=_series(record) if record.mode == "timing" else None,
            session=_session(record, has_runs=runs is not None),
            operators=_operators(record),
            details={
                "device_conditions": _conditions(record),
                "accuracy": _accuracy(record),
                **(kernels_of(folder, record) if succeeded else {}),
                **layers_of(folder, record),
            },
            runs=runs,
            sources=read_sources(folder, record),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        cause = f"does not match its schema ({type(error).__name__}: {error})"
        raise LoadError(f"{folder}/session.json: {cause}; restore the bundle from a backup") from error


def rows_of_etdump(path: Path) -> Rows:
    """Return the rows of an ETDump without a bundle; its first run counts as warm-up.

    Raises EtdumpError, LoadError if it does not contain an execution, or OSError if it cannot be read.
    """
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    runs = _consistent_runs(read_etdump(content, name=str(path)), str(path), warmup_executions=1)
    if not len(runs.execute_ns):
        raise LoadError(f"{path}: the ETDump contains 0 executions (Method::execute); nothing was loaded")
    session_id = _loose_id(sha256)
    return Rows(
        path=path,
        sha256=sha256,
        sweep={"sweep_id": f"{LOOSE_SWEEP}-{session_id}", "name": LOOSE_SWEEP, "night": None},
        device=_with_hash({"name": "unknown"}),
        model=_with_hash({"name": printable(path.stem), "precision": "unknown"}, extra=sha256),
        session={
            "session_id": session_id,
            "attempt": 1,
            "variant": "unknown",
            "mode": "timing",
            "executions": len(runs.execute_ns),
            "warmup_executions": 1,
            "status": "succeeded",
            "etdump_sha256": sha256,
        },
        runs=runs,
    )


def session_id_of(path: Path) -> str | None:
    """Return the session id of a bundle's folder or a loose ETDump, read without its other files.

    If session.json is damaged, it is the id that the folder's name begins with; None if there is none.
    """
    try:
        if not path.is_dir():
            return _loose_id(sha256_of(path))
        return str(json.loads((path / RECORD).read_bytes())["session_id"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        found = _SESSION_ID.match(path.name)
        return found[0] if found else None


def printable(text: object) -> str:
    """Return text that can be stored: bytes of a file's name that are not UTF-8 become question marks."""
    return str(text).encode("utf-8", "replace").decode()


def _loose_id(sha256: str) -> str:
    return sha256[:16]


def _read_runs(path: Path, record: SessionRecord) -> Runs:
    runs = _consistent_runs(read_etdump(path), str(path), record.warmup_executions)
    if len(runs.execute_ns) != record.executions:
        raise LoadError(
            f"{path}: the ETDump contains {len(runs.execute_ns)} executions, but session.json states "
            f"{record.executions}; restore the bundle from a backup"
        )
    return runs


def _consistent_runs(dump: Etdump, shown: str, warmup_executions: int) -> Runs:
    runs = runs_of(dump)
    if cause := contradiction(dump, runs, warmup_executions):
        raise LoadError(f"{shown}: {cause}")
    return runs


def _session(record: SessionRecord, *, has_runs: bool) -> Row:
    stats = record.stats or {}
    fields = {
        "session_id", "attempt", "variant", "mode", "threads", "executions", "warmup_executions", "status",
        "reason_code", "reason", "log_tail", "exit_code", "signal", "wall_s", "farm_version",
    }  # fmt: skip
    return {
        **record.model_dump(include=fields),
        "slot": record.index,
        "purpose": record.arm.purpose if record.arm else None,
        "comparison": record.arm.comparison if record.arm else None,
        "arm": record.arm.side if record.arm else None,
        # It explains a change and is no part of the cell: the .pte file and the runner decide what may be pooled.
        "source_commit": record.sweep.source.commit if record.sweep.source else None,
        "source_is_dirty": record.sweep.source.is_dirty if record.sweep.source else None,
        "started_at": _utc(datetime.fromisoformat(record.started_at)),
        "ended_at": _utc(datetime.fromisoformat(record.ended_at)),
        "command": _json(record.command),
        "load_ns": stats.get("load_ns"),
        "peak_resident_bytes": stats.get("peak_resident_bytes"),
        "threads_used": stats.get("threads_used"),
        "sme_hardware": stats.get("sme_hardware"),
        "sme_told": stats.get("sme_told"),
        "sme2_hardware": stats.get("sme2_hardware"),
        "sme2_told": stats.get("sme2_told"),
        "etdump_sha256": record.files["model.etdump"].sha256 if has_runs else None,
    }


def _device(record: SessionRecord) -> Row:
    device, facts = record.device, record.device.facts.model_dump()
    same_name = ("os", "os_version", "build", "soc", "cores", "memory_bytes", "arch", "platform", "sme", "sme2")
    return _with_hash(
        {
            **device.model_dump(include={"name", "transport", "emulated", "site"}),
            "labels": _json(device.labels),
            "device_model": facts.get("model"),
            **{key: facts.get(key) for key in (*same_name, "hostname", "serial")},
        }
    )


def _model(record: SessionRecord) -> Row:
    model = record.model
    return _with_hash(
        {
            **model.model_dump(include={"name", "precision", "seed", "export_key", "pte_sha256", "pte_bytes"}),
            "executorch_version": model.versions.get("executorch"),
            "versions": _json(model.versions),
            # Without them, the hash of the row must be that of earlier loads.
            **({"model_source_sha256": model.source_sha256} if model.source_sha256 else {}),
            **({"inputs_sha256": model.inputs_sha256, "method": model.method} if model.inputs_sha256 else {}),
            **({"tokens": model.tokens, "kv_depth": model.kv_depth or 0} if model.tokens else {}),
        },
        extra=_json([model.delegated, model.portable]),
    )


def _operators(record: SessionRecord) -> list[Row]:
    return [
        {
            "placement": placement,
            "operator": str(entry["operator"]),
            "count": int(entry["count"]),
            "reason": entry.get("reason"),
        }
        for placement, entries in (("delegated", record.model.delegated), ("portable", record.model.portable))
        for entry in entries
    ]


def _accuracy(record: SessionRecord) -> list[Row]:
    """Return a row for each output and reference.

    An older farm did not record the reference: it compared int8 with the fp32 model (as migration 0014 does).
    """
    unstated = "fp32" if record.model.precision in ("int8_static", "int8_dynamic") else "eager"
    return [
        output.model_dump() | ({} if "reference" in output.model_fields_set else {"reference": unstated})
        for output in record.accuracy or []
    ]


def _runner(record: SessionRecord) -> Row | None:
    runner = record.runner
    if runner is None:
        return None
    return _with_hash(
        {
            **runner.model_dump(exclude={"versions"}),
            "runner_version": runner.versions.get("runner"),
            "executorch_version": runner.versions.get("executorch"),
            "versions": _json(runner.versions),
        }
    )


def _series(record: SessionRecord) -> Row:
    """Return the key that sessions of different nights must share to be compared."""
    facts = record.device.facts
    key = {
        "model": record.model.name,
        "seed": record.model.seed,
        "backend": backend_of(record.model.precision),
        "precision": record.model.precision,
        "threads": record.threads,
        "variant": record.variant,
        "device_model": facts.model or record.device.name,
        "os_build": facts.build or facts.os_version,
        "emulated": record.device.emulated,
    }
    return {"series_id": hashlib.sha256(_json(key).encode()).hexdigest()[:16], **key}


def _conditions(record: SessionRecord) -> list[Row]:
    """Return a row for each moment; the columns of device_conditions are the fields of Conditions."""
    return [
        {
            **seen.model_dump(),
            "moment": moment,
            "taken_at": _utc(seen.taken_at) if seen.taken_at else None,
            "thermal_status": None if seen.thermal_status is None else str(seen.thermal_status),
        }
        for moment, seen in record.conditions.items()
        if seen is not None
    ]


def _with_hash(row: Row, extra: str = "") -> Row:
    return {"content_sha256": hashlib.sha256((_json(row) + extra).encode()).hexdigest(), **row}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _utc(moment: datetime) -> datetime:
    """Return a time as UTC without a zone, as stored in the warehouse; a time without a zone is UTC already."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
