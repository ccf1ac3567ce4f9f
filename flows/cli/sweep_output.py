"""The text and JSON of `etfarm sweep`: with --dry-run its plan, and at its end the times and the verdicts."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from flows.warehouse.readable import ask_warehouse
from tasks.bundle.model_names import short_names
from tasks.bundle.robust_statistics import median_interval
from tasks.bundle.variant_word import variant_word
from tasks.pages.rows import short_text, table_lines
from tasks.results.measurements.latency import interval_text
from tasks.results.sentences import describe_differences
from tasks.results.text import duration
from tasks.results.verdicts import QUIET, failed_lines
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.sweep_preview import DevicePreview, SweepPreview
    from flows.sweep_result import SweepEnd
    from tasks.measure.prepare import ExportState

_MAX_EXPORTS, _MAX_LINES, _MAX_VERDICTS = 6, 10, 3
_EXPORT_STATES: dict["ExportState", str] = {
    "ready": "ready",
    "shared": "to fetch from the store",
    "to export": "to export",
    "unknown": "unknown before the export",
    "skipped": "skipped",
    "wrong": "cannot be exported",
}
_COUNTS = ("cells", "sessions", "measured")
_CELL = ("device", "model", "precision", "variant", "threads", "sessions", "runs")
_TITLES = (*_CELL, "time ms", "MAD ms", "95 % interval or range", "differs")
_TIME_FIELDS = (*_CELL, "time_ms", "mad_ms")


def plan_as_json(preview: "SweepPreview") -> str:
    """Return the plan of a sweep as one JSON object; docs/json.md describes it."""
    statuses = preview.plan.exports.statuses.items()
    exports = [{"export": " ".join(pair), "state": each.state, "note": each.note} for pair, each in statuses]
    devices = []
    for each in preview.devices:
        about = asdict(each)
        min_s, max_s = about.pop("seconds") or (None, None)
        devices.append(about | {"min_s": min_s, "max_s": max_s})
    about_all = {
        "sweep": preview.plan.sweep.sweep_id,
        "exports": exports,
        "installs": preview.installs,
        "devices": devices,
    }
    return json.dumps(about_all, indent=1) + "\n"


def plan_lines(preview: "SweepPreview", now: datetime) -> Iterator[str]:
    """Yield the plan of a sweep as text: a line about all devices, then about exports, then one per device."""
    used = [each for each in preview.devices if each.is_used]
    cells, sessions, measured = (sum(getattr(each, name) for each in used) for name in _COUNTS)
    counts = f"{cells} cells, {sessions} sessions, {measured} of them measured"
    counts = f"{len(used)} of {len(preview.devices)} devices, {counts}"
    yield f"{preview.plan.sweep.sweep_id}: {counts}; {_expected_time(preview, used, now)}"
    exports = preview.plan.exports.statuses
    states = Counter(each.state for each in exports.values())
    yield f"exports: {', '.join(f'{states[each]} {words}' for each, words in _EXPORT_STATES.items() if states[each])}"
    if titles := [" ".join(pair) for pair, each in exports.items() if each.state == "to export"]:
        more = f" and {len(titles) - _MAX_EXPORTS} more" if len(titles) > _MAX_EXPORTS else ""
        yield f"to export: {', '.join(titles[:_MAX_EXPORTS])}{more}; their methods and sizes are unknown before"
    yield from (f"to install: {each}" for each in preview.installs)
    for pair, each in exports.items():
        if each.note:
            yield f"{' '.join(pair)}: {_EXPORT_STATES[each.state]}: {each.note}"
    yield from (_device_line(device, len(preview.plan.exports.pending)) for device in preview.devices)


def _device_line(device: "DevicePreview", waiting: int) -> str:
    """Return the line of a device; `waiting` exports have no size yet, so their bytes to push are unknown."""
    state = f"{device.state}: {device.why}" if device.why else device.state
    if device.state == "not selected":
        return f"{device.device}: {state}"
    parts = [f"{device.cells} cells", f"{device.sessions} sessions", f"{device.measured} measured"]
    parts += [f"{device.not_needed} not needed"] if device.not_needed else []
    parts += [f"{device.unknown} unknown before the export"] if device.unknown else []
    about = [", ".join(parts)]
    if device.platform:
        versions = f" (executorch {', '.join(device.versions_to_build)})" if device.versions_to_build else ""
        about.append(f"runner {device.platform} {'to build' if device.runners_to_build else 'ready'}{versions}")
    if device.push_bytes is not None:
        sizes = [f"{device.push_bytes / 1e6:.1f} MB"] if device.push_bytes else []
        about.append(f"to push: {' and '.join(sizes + [f'{waiting} exports'] * bool(waiting)) or 'nothing'}")
    return f"{device.device}: {state}; {'; '.join([*about, _duration_range(device.seconds)])}"


def _expected_time(preview: "SweepPreview", used: Sequence["DevicePreview"], now: datetime) -> str:
    """Return how long the sweep takes, as the slowest used device, and until when; unknown if one of them is."""
    spans = [each.seconds for each in used if each.seconds is not None]
    if not used or len(spans) < len(used):
        return "time unknown"
    span = max(each[0] for each in spans), max(each[1] for each in spans)
    if not span[1]:
        return "nothing to measure"
    ends = dict.fromkeys((now + timedelta(seconds=each)).strftime("%H:%M") for each in span)
    beside = "exports, start and report" if preview.plan.exports.pending else "start and report"
    return f"{_duration_range(span)}, until {' to '.join(ends)}, without {beside}"


def _duration_range(seconds: tuple[float, float] | None) -> str:
    """Return `12 min to 15 min`, or one duration if both are equal as text."""
    if seconds is None:
        return "time unknown: no earlier sweep measured three quarters of it"
    low, high = map(duration, seconds)
    return low if low == high else f"{low} to {high}"


def end_pieces(end: "SweepEnd", workspace: Workspace) -> Iterator[str]:
    """Yield at most ten lines: the table of times, verdicts that matter, noisy devices, and the message of the end."""
    lines = _first_lines(_verdict_lines(end, workspace), _MAX_VERDICTS, "lines: etfarm verdicts")
    names = short_names(name for (name,) in ask_warehouse("measured_models", workspace))
    rows = [
        (
            device,
            names[model],
            precision,
            variant_word(variant),
            *rest,
            interval_text(times_ms or [], lambda each: short_text(round(each, 4))),
            describe_differences(differs),
        )
        for device, model, precision, variant, *rest, times_ms, differs in ask_warehouse(
            "times", workspace, sweep_id=end.sweep_id
        )
    ]
    is_ambiguous = any(row[-1] for row in rows)
    columns = len(_TITLES) if is_ambiguous else len(_TITLES) - 1  # every name has one content
    table = "".join(table_lines(_TITLES[:columns], [[row[:columns] for row in rows]])).splitlines()
    head, cells = table[:2], table[2:-1]  # the last line counts the rows
    free_lines = _MAX_LINES - len(head) - len(lines) - 1
    for line in [*head, *_first_lines(cells, free_lines, "cells: etfarm site report"), *lines]:
        yield f"{line}\n"
    yield f"{end.message}\n"


def _verdict_lines(end: "SweepEnd", workspace: Workspace) -> list[str]:
    """Return the verdicts that matter, worst first and one for each reason of failed ones, then the noisy devices."""
    from flows.sweep_result import read_noise_lines, read_verdicts  # slow to import, and the plan does without

    verdicts = read_verdicts(end.sweep_id, workspace)
    failed = failed_lines(verdicts)
    loud = (failed if row.verdict == "failed" else [row.line] for row in verdicts if row.verdict not in QUIET)
    worst_first = dict.fromkeys(line for lines in loud for line in lines)
    return [*worst_first, *read_noise_lines(end.sweep_id, workspace)]


def _first_lines(lines: list[str], max_lines: int, rest: str) -> list[str]:
    """Return at most `max_lines` lines; if some are left out, the last one counts them and names the `rest`."""
    return lines if len(lines) <= max_lines else [*lines[: max_lines - 1], f"{len(lines) - max_lines + 1} more {rest}"]


def end_as_json(end: "SweepEnd", code: int, workspace: Workspace) -> str:
    """Return the end of a sweep as one JSON object; docs/json.md describes it."""
    from flows.sweep_result import read_verdicts

    cells = []
    for *row, times_ms, differs in ask_warehouse("times", workspace, sweep_id=end.sweep_id):
        low, high = median_interval(times_ms or []) or (None, None)
        figures = dict(zip(_TIME_FIELDS, row, strict=True))
        cells.append({**figures, "low_ms": low, "high_ms": high, "differs": describe_differences(differs)})
    about = {
        "sweep": end.sweep_id,
        "state": "failed" if code else "completed",
        "message": end.message,
        "sessions": end.sessions,
        "report": end.report,
        "cells": cells,
        "verdicts": [row.data() for row in read_verdicts(end.sweep_id, workspace)],
    }
    return json.dumps(about, indent=1) + "\n"
