"""Rows of the warehouse from session.json, one function per table."""

import hashlib
import json
import shlex
from datetime import UTC, datetime
from itertools import takewhile
from statistics import median
from typing import Any

from tasks.bundle.cell import backend_name, series_backend_name
from tasks.bundle.memory_plan import MemoryPlan
from tasks.bundle.record import SessionRecord, Source
from tasks.bundle.runner_stats import SessionColumns, Stats
from tasks.bundle.runtime import parse_runtime
from tasks.etdump.tree import Runs

Row = dict[str, Any]
_MODEL_COLUMNS = ("tokens", "steps", "prompt_tokens", "macs", "read_bytes", "perplexity")
_PLAN_COLUMNS = ("planned_bytes", "live_bytes", "needed_bytes", "constant_bytes", "delegate_bytes")
_SHARE_COLUMNS = {"delegates", "portable_operators", "portable_macs"}
_LAYER_COLUMNS = {"layer_count", "converted_layers", "layer_weights", "converted_weights"}


def session_row(record: SessionRecord, runs: Runs | None) -> Row:
    """Return the row of `session` without the keys of other tables; `runs` are those of its ETDump, if it is loaded."""
    stats = record.stats or Stats()
    traced = (stats.execution_ns or [])[record.warmup_executions :]
    untraced = (stats.untraced_execution_ns or [])[record.warmup_executions :]
    fields = {
        "session_id", "attempt", "variant", "mode", "threads", "executions", "warmup_executions", "status",
        "reason_code", "reason", "log_tail", "exit_code", "signal", "wall_s", "farm_version",
    }  # fmt: skip
    return {
        **record.model_dump(include=fields),
        "repetition": record.repetition,
        "purpose": record.arm.purpose if record.arm else None,
        "comparison": record.arm.comparison if record.arm else None,
        "arm": record.arm.side if record.arm else None,
        # The source explains a change, but the .pte file and the runner decide which sessions form a cell.
        **{f"source_{name}": getattr(record.sweep.source, name, None) for name in Source.model_fields},
        "source_commits": _commits(record.sweep.source),
        "started_at": _utc(datetime.fromisoformat(record.started_at)),
        "ended_at": _utc(datetime.fromisoformat(record.ended_at)),
        "command": _json(record.command),
        **stats.model_dump(include=set(SessionColumns.model_fields)),
        # By one clock; both were measured or neither.
        "traced_ns": median(traced) if traced and untraced else None,
        "untraced_ns": median(untraced) if traced and untraced else None,
        "etdump_sha256": record.files["model.etdump"].sha256 if runs else None,
        "delegate_note": delegate_note(runs),
        "mappings": _json([each.model_dump() for each in stats.mappings]) if stats.mappings else None,
    }


def _commits(source: Source | None) -> str | None:
    return _json([commit.model_dump() for commit in source.commits]) if source and source.commits else None


def delegate_note(runs: Runs | None) -> str | None:
    """Return the notes on the times of the delegates, joined; None if there are none."""
    return "; ".join(runs.delegate_notes) or None if runs else None


def device_row(record: SessionRecord) -> Row:
    device, facts = record.device, record.device.facts.model_dump()
    units = facts["sme_units"]
    same_name = ("os", "os_version", "build", "soc", "cores", "memory_bytes", "arch", "platform", "sme", "sme2")
    return with_hash(
        {
            **device.model_dump(include={"name", "transport", "emulated", "site"}),
            "labels": _json({"sme_units": str(units)} | device.labels if units else device.labels),
            "device_model": facts.get("model"),
            "launcher": _launcher(record),
            **{key: facts.get(key) for key in (*same_name, "hostname", "serial")},
        }
    )


def _launcher(record: SessionRecord) -> str | None:
    """Return the words before the runner in a session's command, as a shell would read them; None without any.

    The runner is the word with its hash. They decide where and how the program runs, such as `taskset` and `nice`.
    """
    if record.runner is None:
        return None
    sha256, words = record.runner.runner_sha256, record.command
    before = list(takewhile(lambda word: sha256 not in word, words))
    return shlex.join(before) if before and len(before) < len(words) else None


def model_row(record: SessionRecord) -> Row:
    model = record.model
    return with_hash(
        {
            **model.model_dump(include={"name", "precision", "seed", "export_key", "pte_sha256", "pte_bytes"}),
            "executorch_version": model.versions.get("executorch"),
            "versions": _json(model.versions),
            "model_source_sha256": model.source_sha256 or None,
            "method": model.method if model.inputs_sha256 else None,
            "inputs_sha256": model.inputs_sha256 or None,
            "kv_depth": (model.kv_depth or 0) if model.tokens else None,
            **{name: getattr(model, name) or None for name in _MODEL_COLUMNS},
            **model.model_dump(include=_LAYER_COLUMNS, exclude_none=True),
            **_plan_columns(model.memory),
            **model.model_dump(include=_SHARE_COLUMNS, exclude_none=True),
        },
        extra=_json([model.delegated, model.portable]),
    )


def _plan_columns(plan: MemoryPlan | None) -> Row:
    """Return the columns of the planned memory; empty without a plan, so that older models stay the same."""
    if plan is None:
        return {}
    return {
        **{name: getattr(plan, name) for name in _PLAN_COLUMNS},
        "memory_plan": plan.model_dump_json(),
    }


def operators_rows(record: SessionRecord) -> list[Row]:
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


def runner_row(record: SessionRecord) -> Row | None:
    runner = record.runner
    if runner is None:
        return None
    return with_hash(
        {
            **runner.model_dump(exclude={"versions"}),
            "runner_version": runner.versions.get("runner"),
            "executorch_version": runner.versions.get("executorch"),
            "versions": _json(runner.versions),
        }
    )


def series_row(record: SessionRecord) -> Row:
    """Return the row of `series`; sessions of different nights are compared only if they share its id.

    The id contains `series_backend_name`, which keeps older ids valid; the column has the actual backend. A stated
    delegate is in the name of the model: nights whose export failed, which call no backend, are in the same series.
    """
    facts, precision = record.device.facts, record.model.precision
    delegate = parse_runtime(record.model.name).delegate
    calls = None if record.model.delegate_calls is None else set(record.model.backends.values())
    delegates = None if delegate else calls
    key = {
        "model": record.model.name,
        "seed": record.model.seed,
        "backend": series_backend_name(precision, delegates),
        "precision": precision,
        "threads": record.threads,
        "variant": record.variant,
        "device_model": facts.model or record.device.name,
        "os_build": facts.build or facts.os_version,
        "emulated": record.device.emulated,
    }
    series_id = hashlib.sha256(_json(key).encode()).hexdigest()[:16]
    return {"series_id": series_id, **key, "backend": delegate or backend_name(precision, delegates)}


def conditions_rows(record: SessionRecord) -> list[Row]:
    """Return a row of `device_conditions` for each moment with conditions: before and after the session.

    The columns are `moment` and the fields of Conditions; `taken_at` is UTC, and `thermal_status` a text.
    """
    return [
        {
            **conditions.model_dump(exclude={"memory_kills"}),  # of use only while a session is judged
            "moment": moment,
            "taken_at": _utc(conditions.taken_at) if conditions.taken_at else None,
            "thermal_status": None if conditions.thermal_status is None else str(conditions.thermal_status),
        }
        for moment, conditions in record.conditions.items()
        if conditions is not None
    ]


def with_hash(row: Row, extra: str = "") -> Row:
    """Return a row with `content_sha256`, of its content and of `extra`, by which equal rows are found."""
    return {"content_sha256": hashlib.sha256((_json(row) + extra).encode()).hexdigest(), **row}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _utc(moment: datetime) -> datetime:
    """Return a time in UTC without a zone, as in the warehouse; a time without a zone is taken as UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
