"""What a sweep prints at its end: the times of its cells and the verdicts, for people or as one JSON object."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flows.ending import SweepEnd, noise_of, verdicts_of
from flows.warehouse.publish import ask_warehouse
from tasks.bundle.interval import median_interval
from tasks.bundle.model_names import shown_names
from tasks.pages.rows import short_text, table_lines
from tasks.results.text import spread
from tasks.results.verdicts import failed_lines

_MOST_LINES, _MOST_VERDICTS = 10, 3
# Verdicts that the terminal does not name; the report does.
_QUIET = {"no change", "insufficient data"}
_CELL = ("device", "model", "precision", "variant", "threads", "sessions", "runs")
_TITLES = (*_CELL, "time ms", "MAD ms", "95 % interval or range", "differs")
_NAMES = (*_CELL, "time_ms", "mad_ms")


def pieces_of(end: SweepEnd, note: str | None, var: Path, warehouse: Path | None) -> Iterator[str]:
    """Yield the table of times, a line per verdict that matters, and the sentence about all: ten lines at most."""
    lines = _shortened(
        [*_verdict_lines(end, var, warehouse), *noise_of(end.sweep_id, var, warehouse)],
        _MOST_VERDICTS,
        "lines: etfarm verdicts",
    )
    names = shown_names(name for (name,) in ask_warehouse("measured_models", var, warehouse))
    rows = [
        (device, names[model], *rest, spread(times_ms or [], _in_table), differs)
        for device, model, *rest, times_ms, differs in _times(end, var, warehouse)
    ]
    is_ambiguous = any(row[-1] for row in rows)
    columns = len(_TITLES) if is_ambiguous else len(_TITLES) - 1  # every name has one content
    table = "".join(table_lines(_TITLES[:columns], [[row[:columns] for row in rows]])).splitlines()
    head, cells = table[:2], table[2:-1]
    room = _MOST_LINES - len(head) - len(lines) - 1
    for line in [*head, *_shortened(cells, room, "cells: etfarm site report"), *lines]:
        yield f"{line}\n"
    yield "; ".join(filter(None, [end.message, note])) + "\n"


def _verdict_lines(end: SweepEnd, var: Path, warehouse: Path | None) -> Iterable[str]:
    """Return the lines of verdicts that matter, the worst first; of failures, one for each reason."""
    rows = verdicts_of(end.sweep_id, var, warehouse)
    failed = failed_lines(rows)
    loud = (failed if row.verdict == "failed" else [row.line] for row in rows if row.verdict not in _QUIET)
    return dict.fromkeys(line for lines in loud for line in lines)


def _shortened(lines: list[str], most: int, rest: str) -> list[str]:
    """Return at most so many lines, the last of which counts those that are left out."""
    return lines if len(lines) <= most else [*lines[: most - 1], f"{len(lines) - most + 1} more {rest}"]


def _in_table(milliseconds: float) -> str:
    """Return a time in the digits of the column `time ms`."""
    return short_text(round(milliseconds, 4))


def as_json(end: SweepEnd, code: int, var: Path, warehouse: Path | None) -> str:
    """Return the end of a sweep as one JSON object; docs/json.md describes it."""
    about = {
        "sweep": end.sweep_id,
        "state": "failed" if code else "completed",
        "message": end.message,
        "sessions": end.sessions,
        "report": end.report,
        "cells": [_cell(row) for row in _times(end, var, warehouse)],
        "verdicts": [row.data() for row in verdicts_of(end.sweep_id, var, warehouse)],
    }
    return json.dumps(about, indent=1) + "\n"


def _times(end: SweepEnd, var: Path, warehouse: Path | None) -> list[tuple[Any, ...]]:
    return ask_warehouse("times", var, warehouse, sweep_id=end.sweep_id)


def _cell(row: tuple[Any, ...]) -> dict[str, Any]:
    low, high = median_interval(row[-2] or []) or (None, None)
    return {**dict(zip(_NAMES, row, strict=False)), "low_ms": low, "high_ms": high, "differs": row[-1]}
