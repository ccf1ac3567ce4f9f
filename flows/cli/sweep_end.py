"""What a sweep prints at its end: the times of its cells and the verdicts, as text or as one JSON object."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from flows.sweep_result import SweepEnd, noise_of, verdicts_of
from flows.warehouse.publish import ask_warehouse
from tasks.bundle.model_names import shown_names
from tasks.bundle.robust_statistics import median_interval
from tasks.pages.rows import short_text, table_lines
from tasks.results.latency import spread
from tasks.results.verdicts import Verdict, failed_lines
from tasks.store.workspace import Workspace

_MAX_LINES, _MAX_VERDICTS = 10, 3
# Verdicts that the terminal does not name; the report does.
_QUIET = {"no change", "insufficient data"}
_CELL = ("device", "model", "precision", "variant", "threads", "sessions", "runs")
_TITLES = (*_CELL, "time ms", "MAD ms", "95 % interval or range", "differs")
_NAMES = (*_CELL, "time_ms", "mad_ms")
_OF_VERDICT = (
    "verdict", "metric", "model", "device", "precision", "variant", "threads", "sessions", "ratio", "low", "high",
    "cause", "changed", "reason",
)  # fmt: skip


def pieces_of(end: SweepEnd, workspace: Workspace) -> Iterator[str]:
    """Yield at most ten lines: the table of times, verdicts that matter, noisy devices, and the message of the end."""
    lines = _shortened(
        [*_verdict_lines(end, workspace), *noise_of(end.sweep_id, workspace)],
        _MAX_VERDICTS,
        "lines: etfarm verdicts",
    )
    names = shown_names(name for (name,) in ask_warehouse("measured_models", workspace))
    rows = [
        (device, names[model], *rest, spread(times_ms or [], lambda each: short_text(round(each, 4))), differs)
        for device, model, *rest, times_ms, differs in ask_warehouse("times", workspace, sweep_id=end.sweep_id)
    ]
    is_ambiguous = any(row[-1] for row in rows)
    columns = len(_TITLES) if is_ambiguous else len(_TITLES) - 1  # every name has one content
    table = "".join(table_lines(_TITLES[:columns], [[row[:columns] for row in rows]])).splitlines()
    head, cells = table[:2], table[2:-1]  # the last line counts the rows
    room = _MAX_LINES - len(head) - len(lines) - 1
    for line in [*head, *_shortened(cells, room, "cells: etfarm site report"), *lines]:
        yield f"{line}\n"
    yield f"{end.message}\n"


def _verdict_lines(end: SweepEnd, workspace: Workspace) -> Iterable[str]:
    """Return the lines of verdicts that matter, the worst first; of failures, one for each reason."""
    rows = verdicts_of(end.sweep_id, workspace)
    failed = failed_lines(rows)
    loud = (failed if row.verdict == "failed" else [row.line] for row in rows if row.verdict not in _QUIET)
    return dict.fromkeys(line for lines in loud for line in lines)


def _shortened(lines: list[str], most: int, rest: str) -> list[str]:
    """Return at most `most` lines; if some are left out, the last one counts them and names the `rest`."""
    return lines if len(lines) <= most else [*lines[: most - 1], f"{len(lines) - most + 1} more {rest}"]


def as_json(end: SweepEnd, code: int, workspace: Workspace) -> str:
    """Return the end of a sweep as one JSON object; docs/json.md describes it."""
    cells = []
    for row in ask_warehouse("times", workspace, sweep_id=end.sweep_id):
        low, high = median_interval(row[-2] or []) or (None, None)
        cells.append({**dict(zip(_NAMES, row, strict=False)), "low_ms": low, "high_ms": high, "differs": row[-1]})
    about = {
        "sweep": end.sweep_id,
        "state": "failed" if code else "completed",
        "message": end.message,
        "sessions": end.sessions,
        "report": end.report,
        "cells": cells,
        "verdicts": [_verdict(row) for row in verdicts_of(end.sweep_id, workspace)],
    }
    return json.dumps(about, indent=1) + "\n"


def _verdict(row: Verdict) -> dict[str, Any]:
    named = {name: getattr(row, name) for name in _OF_VERDICT}
    return named | {"before": row.baseline_value, "after": row.value, "since": str(row.since) if row.since else None}
