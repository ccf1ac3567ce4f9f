"""Convert one bundle or loose ETDump to rows of the warehouse, by table, before they get ids."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from devices.untrusted import UntrustedFileError, parse_json, read_untrusted, sanitize_line
from tasks.bundle.accuracy import read_layer_drift
from tasks.bundle.names import ETDUMP, LAYER_DRIFT, MAX_FILE_BYTES, MAX_LOG_BYTES, MAX_RECORD_BYTES, RECORD
from tasks.bundle.record import BundleError, SessionRecord
from tasks.etdump.columns import Etdump
from tasks.etdump.reader import read_content, read_etdump
from tasks.etdump.tree import Runs, build_runs, contradiction
from tasks.rows.consistency import checksum_contradiction, contradiction_between
from tasks.rows.kernels import kernel_rows
from tasks.rows.record_rows import (
    Row,
    conditions_rows,
    delegate_note,
    device_row,
    model_row,
    operators_rows,
    runner_row,
    series_row,
    session_row,
    with_hash,
)
from tasks.rows.sources import Sources, read_sources
from tasks.store.folder import check_bundle, content_sha256

LOOSE_SWEEP = "loose"
_SESSION_ID = re.compile(r"[0-9a-f]{16}(?![0-9a-f])")
_OBSERVER_MARK = b"PyTorchObserver {"
# As print_report of ExecuTorch's extension/llm/runner/stats.h computes them; times are milliseconds of one clock.
_SPANS = {
    "load": ("model_load_start_ms", "model_load_end_ms"),
    "prompt": ("inference_start_ms", "prompt_eval_end_ms"),
    "first_token": ("inference_start_ms", "first_token_ms"),
    "text": ("prompt_eval_end_ms", "inference_end_ms"),
}


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
        """Whether this is an ETDump or a log without a bundle."""
        return bool(self.session["etdump_sha256"] == self.sha256)

    @property
    def events(self) -> int:
        return len(self.runs.node) if self.runs else 0


def bundle_rows(folder: Path) -> Rows:
    """Check a bundle and return its rows, no runs if it failed; BundleError, EtdumpError or FarmError."""
    bundle = check_bundle(folder, (ETDUMP,))
    return record_rows(folder, bundle.record, bundle.sha256, etdump=bundle.content.get(ETDUMP))


def record_rows(
    folder: Path, record: SessionRecord, sha256: str, runs: Runs | None = None, etdump: bytes | None = None
) -> Rows:
    """Return the rows of a bundle whose files have the hashes of `record`; `sha256` is that of session.json.

    `runs` are those of its ETDump, or `etdump` is its content, if this process has just read it. Raises as
    `bundle_rows` does.
    """
    if record.status == "succeeded" and record.mode == "timing" and ETDUMP not in record.files:
        raise BundleError(f"{folder}: {ETDUMP} is missing although the session succeeded; restore the bundle")
    # Mode numerics runs another program, whose events are not the model's.
    if record.status != "succeeded" or record.mode == "numerics" or ETDUMP not in record.files:
        runs = None
    elif runs is None:
        content = read_content(folder / ETDUMP, max_bytes=MAX_FILE_BYTES) if etdump is None else etdump
        runs = _read_runs(folder / ETDUMP, content, record)
    try:
        belongs_to_a_series = record.mode == "timing" and not record.sweep.on_demand
        return Rows(
            path=folder,
            sha256=sha256,
            sweep={
                "sweep_id": record.sweep.sweep_id,
                "name": record.sweep.name,
                "night": date.fromisoformat(record.sweep.night),
                "measured_later": record.sweep.measured_later or None,
            },
            device=device_row(record),
            model=model_row(record),
            runner=runner_row(record),
            series=series_row(record) if belongs_to_a_series else None,
            session=session_row(record, runs),
            operators=operators_rows(record),
            details=_detail_rows(folder, record),
            runs=runs,
            sources=read_sources(folder, record),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        cause = f"does not match its schema ({type(error).__name__}: {error})"
        raise FarmError(f"{folder}/session.json: {cause}; restore the bundle from a backup") from error


def _detail_rows(folder: Path, record: SessionRecord) -> dict[str, list[Row]]:
    """Return `Rows.details` of a bundle; only a session that succeeded has kernels."""
    # A session that failed may have values of layers, too.
    layers = read_layer_drift(folder / LAYER_DRIFT) if LAYER_DRIFT in record.files else []
    return {
        "device_conditions": conditions_rows(record),
        "session_gate": [
            {"limit_name": check.limit, **check.model_dump(exclude={"limit"})} for check in record.limit_checks
        ],
        "accuracy": [output.columns for output in record.accuracy or []],
        "layer_value": [layer.model_dump() for layer in layers],
        **(kernel_rows(folder, record) if record.status == "succeeded" else {}),
    }


def loose_rows(path: Path) -> Rows:
    """Return the rows of an ETDump without a bundle, or of a log of ExecuTorch's runner for language models.

    The first run of an ETDump counts as warm-up, unless it is the only one. Raises EtdumpError, or FarmError if an
    ETDump does not contain an execution.
    """
    try:
        log = b"" if path.suffix == ".etdump" else read_untrusted(path, MAX_LOG_BYTES)
    except UntrustedFileError:  # reported when it is read as an ETDump
        log = b""
    if _OBSERVER_MARK in log:
        columns = {"executions": 1, "warmup_executions": 0, **_observer_columns(log, str(path))}
        return _without_bundle(path, hashlib.sha256(log).hexdigest(), columns)
    content = read_content(path, max_bytes=MAX_FILE_BYTES)
    sha256 = hashlib.sha256(content).hexdigest()
    dump = read_etdump(content, name=str(path))
    warmup_executions = 1 if dump.executions > 1 else 0
    runs = _build_consistent_runs(dump, str(path), warmup_executions)
    if not len(runs.execute_ns):
        raise FarmError(f"{path}: the ETDump contains 0 executions (Method::execute); nothing was loaded")
    columns = {
        "executions": len(runs.execute_ns),
        "warmup_executions": warmup_executions,
        "delegate_note": delegate_note(runs),
    }
    return _without_bundle(path, sha256, columns, runs)


def _observer_columns(content: bytes, label: str) -> dict[str, Any]:
    """Return the columns of `session` from the one PyTorchObserver line of a log; raises FarmError."""
    lines = [line[line.index(_OBSERVER_MARK) :] for line in content.splitlines() if _OBSERVER_MARK in line]
    if len(lines) != 1:
        raise FarmError(f"{label}: has {len(lines)} PyTorchObserver lines; load a log for each text, with one")
    try:
        stats = parse_json(lines[0][len(_OBSERVER_MARK) - 1 :])
        tokens = {name: int(stats[f"{name}_tokens"]) for name in ("prompt", "generated")}
        ms = {name: float(stats[end]) - float(stats[start]) for name, (start, end) in _SPANS.items()}
    except (ValueError, TypeError, KeyError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise FarmError(f"{label}: the PyTorchObserver line is incomplete ({cause}); copy it complete") from None
    if min(tokens.values()) < 1 or min(ms.values()) < 0:
        raise FarmError(f"{label}: the PyTorchObserver line states no tokens, or times that run backwards")
    return {
        "load_ns": round(ms["load"] * 1e6),
        "reported_prompt_tokens": tokens["prompt"],
        "reported_prompt_ms": ms["prompt"],
        "reported_first_token_ms": ms["first_token"],
        "reported_tokens": tokens["generated"],
        "reported_text_ms": ms["text"],
    }


def _without_bundle(path: Path, sha256: str, columns: Row, runs: Runs | None = None) -> Rows:
    """Return the rows of a file that is a session by itself, with more `columns` of `session`; its cell is unknown."""
    session_id = sha256[:16]
    return Rows(
        path=path,
        sha256=sha256,
        sweep={"sweep_id": f"{LOOSE_SWEEP}-{session_id}", "name": LOOSE_SWEEP, "night": None},
        device=with_hash({"name": "unknown"}),
        model=with_hash({"name": sanitize_line(path.stem), "precision": "unknown"}, extra=sha256),
        session={
            "session_id": session_id,
            "attempt": 1,
            "variant": "unknown",
            "mode": "timing",
            "status": "succeeded",
            "etdump_sha256": sha256,
            **columns,
        },
        runs=runs,
    )


def read_session_id(path: Path) -> str | None:
    """Return the session id of a bundle or loose ETDump, from its name if session.json is damaged; or None."""
    try:
        if not path.is_dir():
            return content_sha256(path)[:16]
        return str(json.loads(read_untrusted(path / RECORD, MAX_RECORD_BYTES))["session_id"])
    except (UntrustedFileError, ValueError, KeyError, TypeError, RecursionError):
        match = _SESSION_ID.match(path.name)
        return match[0] if match else None


def _read_runs(path: Path, content: bytes, record: SessionRecord) -> Runs:
    """Return the runs of a bundle's ETDump; raises FarmError if they contradict session.json, or EtdumpError."""
    dump = read_etdump(content, name=str(path), backends=record.model.backends)
    runs = _build_consistent_runs(dump, str(path), record.warmup_executions)
    if len(runs.execute_ns) != record.executions:
        raise FarmError(
            f"{path}: the ETDump contains {len(runs.execute_ns)} executions, but session.json states "
            f"{record.executions}; restore the bundle from a backup"
        )
    if cause := contradiction_between(runs, record.claims) or checksum_contradiction(content, record.stats):
        raise FarmError(f"{path.parent}: {cause}; check the runner and measure again")
    return runs


def _build_consistent_runs(dump: Etdump, label: str, warmup_executions: int) -> Runs:
    """Return the runs of an ETDump that errors call `label`; raises FarmError if they cannot be pooled."""
    runs = build_runs(dump)
    if cause := contradiction(dump, runs, warmup_executions):
        raise FarmError(f"{label}: {cause}")
    return runs
