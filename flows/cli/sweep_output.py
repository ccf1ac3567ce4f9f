"""The text and JSON of `etfarm sweep`: with --dry-run its plan, and at its end the times and the verdicts."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from flows.formatting import others_text
from flows.status.expected_time import expected_end
from flows.terminal import show, show_table, terminal_width
from flows.warehouse.readable import ask_warehouse
from tasks.bundle.model_names import case_title, short_names
from tasks.bundle.robust_statistics import median_interval
from tasks.bundle.runtime import parse_runtime
from tasks.bundle.variant_word import variant_word
from tasks.measure.clock import finish_moment
from tasks.pages.terminal_table import fit
from tasks.results.measurements.latency import bounds_text, time_digits
from tasks.results.sentences import describe_differences
from tasks.results.table import Cell, Column, Table
from tasks.results.text import Text, duration
from tasks.results.verdicts import QUIET, failed_lines
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.sweep_preview import DevicePreview, SweepPreview
    from flows.sweep_result import SweepEnd
    from tasks.measure.prepare import ExportState
    from tasks.results.verdicts import VerdictRow

_MAX_EXPORTS, _MAX_LINES, _MAX_VERDICTS, _MAX_NOISE = 6, 10, 3, 2
_EXPORT_STATES: dict["ExportState", str] = {
    "ready": "ready",
    "shared": "to fetch from the store",
    "to export": "to export",
    "unknown": "unknown before the export",
    "skipped": "skipped",
    "not needed": "not needed",
    "wrong": "cannot be exported",
}
_COUNTS = ("cells", "sessions", "measured")
_CELL = ("device", "model", "precision", "variant", "threads", "sessions", "runs")
_COUNTS_OF_CELL = ("threads", "sessions", "runs")
_INTERVALS = {
    frozenset(): "range",
    frozenset({False}): "range",
    frozenset({True}): "95 % interval",
    frozenset({False, True}): "95 % interval or range",
}
"""The title of the intervals, by whether cells have enough sessions for one."""
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
    counts = f"{len(used)} of {len(preview.devices)} devices, {counts}" if used else "no device can be used now"
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
    for device in preview.devices:
        yield _device_line(device, len(preview.plan.exports.pending))
        yield from (f"{device.device}: {note}" for note in device.notes)


def _device_line(device: "DevicePreview", waiting: int) -> str:
    """Return the line of a device; `waiting` exports have no size yet, so their bytes to push are unknown."""
    state = f"{device.state}: {device.why}" if device.why else device.state
    if device.state == "not selected":
        return f"{device.device}: {state}"
    parts = [f"{device.cells} cells", f"{device.sessions} sessions", f"{device.measured} measured"]
    parts += [others_text(device.of_others)] if device.of_others else []
    parts += [f"{device.not_needed} not needed"] if device.not_needed else []
    parts += [f"{device.unknown} unknown before the export"] if device.unknown else []
    about = [", ".join(parts)]
    if device.platform:
        versions = f" (executorch {', '.join(device.versions_to_build)})" if device.versions_to_build else ""
        about.append(f"runner {device.platform} {'to build' if device.runners_to_build else 'ready'}{versions}")
    if device.push_bytes is not None:
        sizes = [f"{device.push_bytes / 1e6:.1f} MB"] if device.push_bytes else []
        about.append(f"to push: {' and '.join(sizes + [f'{waiting} exports'] * bool(waiting)) or 'nothing'}")
    return f"{device.device}: {state}; {'; '.join([*about, duration_range(device.seconds)])}"


def _expected_time(preview: "SweepPreview", used: Sequence["DevicePreview"], now: datetime) -> str:
    """Return how long the sweep takes, as the slowest used device, and until when; unknown if one of them is."""
    spans = [each.seconds for each in used if each.seconds is not None]
    if not used or len(spans) < len(used):
        return "time unknown"
    span = max(each[0] for each in spans), max(each[1] for each in spans)
    if not span[1]:
        return "nothing to measure"
    end = expected_end(span, now, finish_moment(preview.finish_by))
    beside = "exports, start and report" if preview.plan.exports.pending else "start and report"
    return f"{duration_range(span)}, until {end}, without {beside}"


def duration_range(seconds: tuple[float, float] | None) -> str:
    """Return `12 min to 15 min`, or one duration if both are equal as text."""
    if seconds is None:
        return "time unknown: no earlier sweep measured three quarters of it"
    low, high = map(duration, seconds)
    return low if low == high else f"{low} to {high}"


def show_end(end: "SweepEnd", workspace: Workspace, *, wide: bool = False) -> None:
    """Print at most ten lines: the table of times, verdicts that matter, noisy devices, sessions and report.

    A terminal breaks those that are longer than it is wide.
    """
    from flows.sweep_result import read_noise_lines, read_verdicts  # slow to import, and the plan does without

    if not end.is_recorded:
        show(*end.lines)
        return
    rest = "lines: etfarm verdicts"
    lines = _first_lines(_verdict_lines(read_verdicts(end.sweep_id, workspace)), _MAX_VERDICTS, rest)
    # They have lines of their own: a night with many verdicts must not hide why these cannot be trusted.
    lines += _first_lines(read_noise_lines(end.sweep_id, workspace), _MAX_NOISE, rest)
    rows = ask_warehouse("times", workspace, sweep_id=end.sweep_id)
    if len({parse_runtime(model).delegate for _, model, *_ in rows}) > 1:
        lines.append("the fastest delegate that is accurate: etfarm sql which-delegate")
    table = fit(_times_table(rows, workspace), terminal_width(wide=wide))
    free_lines = _MAX_LINES - len(table.head) - len(table.tail) - len(lines) - len(end.lines)
    show_table(table.head)
    show_table(_first_rows(table.rows, free_lines))
    show_table(table.tail)
    show(*lines, *end.lines)


def _times_table(rows: Sequence[Sequence[Any]], workspace: Workspace) -> Table:
    """Return the cells of a sweep, rows of the query `times`; times have the digits that their interval allows."""
    names = short_names(name for (name,) in ask_warehouse("measured_models", workspace))
    has_interval = {median_interval(times_ms) is not None for *_, times_ms, _ in rows if times_ms and len(times_ms) > 1}
    columns = [Column(name, numeric=name in _COUNTS_OF_CELL, priority=name not in _COUNTS_OF_CELL) for name in _CELL]
    columns += [
        Column("time", "ms", numeric=True, priority=2),
        Column(_INTERVALS[frozenset(has_interval)], "ms", priority=2),
        Column("differs", priority=1),
    ]
    cells = []
    for device, model, precision, variant, *counts, time_ms, _, times_ms, differs in rows:
        digits = time_digits(times_ms or [], 4) if time_ms is not None else 0
        time = None if time_ms is None else f"{time_ms:.{digits}f}"
        name = (device, case_title(names[model]), precision, variant_word(variant), *counts)
        figures = (time, bounds_text(times_ms or [], digits), describe_differences(differs))
        cells.append([*map(_as_cell, (*name, *figures))])
    if not any(row[-1].text for row in cells):  # every name has one content
        columns, cells = columns[:-1], [row[:-1] for row in cells]
    return Table(columns, cells)


def _as_cell(value: object) -> Cell:
    return Cell("" if value is None else str(value))


def _first_rows(rows: Sequence[Sequence[Text]], max_lines: int) -> Iterator[Text]:
    """Yield the lines of the first rows; if some are left out, the last line counts them."""
    heights = [*accumulate(map(len, rows))]
    count = len(rows) if not rows or heights[-1] <= max_lines else sum(each < max_lines for each in heights)
    yield from chain(*rows[:count])
    if count < len(rows):
        yield f"{len(rows) - count} more cells: etfarm site report"


def _verdict_lines(verdicts: Sequence["VerdictRow"]) -> list[str]:
    """Return the verdicts that matter, worst first and one for each reason of failed ones."""
    failed = failed_lines(verdicts)
    loud = (failed if row.verdict == "failed" else [row.line] for row in verdicts if row.verdict not in QUIET)
    return [*dict.fromkeys(line for lines in loud for line in lines)]


def _first_lines(lines: list[str], max_lines: int, rest: str) -> list[str]:
    """Return at most `max_lines` lines; if some are left out, the last one counts them and names the `rest`."""
    return lines if len(lines) <= max_lines else [*lines[: max_lines - 1], f"{len(lines) - max_lines + 1} more {rest}"]


def end_as_json(end: "SweepEnd", code: int, workspace: Workspace) -> str:
    """Return the end of a sweep as one JSON object; docs/json.md describes it."""
    from flows.sweep_result import read_verdicts

    rows = ask_warehouse("times", workspace, sweep_id=end.sweep_id) if end.is_recorded else []
    cells = []
    for *row, times_ms, differs in rows:
        low, high = median_interval(times_ms or []) or (None, None)
        figures = dict(zip(_TIME_FIELDS, row, strict=True))
        cells.append({**figures, "low_ms": low, "high_ms": high, "differs": describe_differences(differs)})
    about = {
        "sweep": end.sweep_id,
        "state": "regression" if end.is_regression else "failed" if code else "completed",
        "message": end.message,
        "sessions": end.sessions,
        "report": end.report,
        "cells": cells,
        "verdicts": [row.data() for row in read_verdicts(end.sweep_id, workspace)] if end.is_recorded else [],
    }
    return json.dumps(about, indent=1) + "\n"
