"""The page of a device: its facts, nights and series, and the histories of these as files.

`templates/history.js.j2` draws the series that the address names. A file has all series of a device in one week, so
that one more night changes one small file of each device, and no page of a series.
"""

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from datetime import date, timedelta
from operator import attrgetter
from typing import Any

from tasks.pages.html import as_json
from tasks.pages.page import Histories, Page, Paragraph, Section
from tasks.pages.report import MAX_ROWS
from tasks.results.addresses import history_file, model_page, night_page
from tasks.results.cells import conditions_of, tags_of
from tasks.results.devices import NOT_OF_FARM_DEVICES, DeviceNightRow, DeviceRow
from tasks.results.reader import Reader
from tasks.results.series import DecisionRow, SeriesNightRow, SeriesRow, counts_in_words, worst_tone
from tasks.results.table import first_rows, table_of
from tasks.results.text import Link, counted

_MAX_NIGHTS = 30
_WEEK = timedelta(days=7)
_COLUMNS = [field.name for field in fields(SeriesNightRow) if field.name not in ("series_id", "device")]
_values_of = attrgetter(*_COLUMNS)


def page(
    row: DeviceRow, nights: Sequence[DeviceNightRow], rows: Sequence[SeriesRow], decisions: Sequence[DecisionRow]
) -> Page:
    """Return the page of a device; `rows` are its series."""
    without_series = "No series of this device was judged yet."
    if row.without_times:
        without_series = f"This device is {row.without_times}: its times mean nothing, are not shown and never ranked."
    in_sql = "etfarm sql lists them in session_overview"
    series = first_rows(rows, MAX_ROWS, "see the models", without=("device",)) if rows else Paragraph(without_series)
    sections = [
        Section("facts", "What it is", [table_of([row], without=NOT_OF_FARM_DEVICES)]),
        *([Section("history", "History", [_histories(rows, decisions)])] if rows else []),
        Section("series", "Series", [series]),
        Section("nights", "Nights", [first_rows(nights, _MAX_NIGHTS, in_sql, without=("device",))]),
    ]
    newest = (" newest night: ", Link(str(row.night), night_page(row.night))) if row.night else ()
    subtitle = (*tags_of(row.without_times), *newest)
    answer = counts_in_words(rows) if rows else without_series
    return Page(f"Device {row.device}", sections, subtitle, answer, worst_tone(rows))


def weeks_of(series: Sequence[SeriesRow]) -> list[date]:
    """Return the Monday of each week in which any of the series has a night, the oldest first."""
    return sorted({monday for row in series for monday in row.weeks})


def _histories(series: Sequence[SeriesRow], decisions: Sequence[DecisionRow]) -> Histories:
    files = [history_file(series[0].device, monday) for monday in weeks_of(series)]
    return Histories(files, {row.series_id: _stated(row, decisions) for row in series})


def _stated(row: SeriesRow, decisions: Sequence[DecisionRow]) -> dict[str, Any]:
    """Return what the script shows of a series besides its nights: names, conditions, a command, notes of users."""
    about = {"model": row.model, "device": row.device, "precision": row.precision, "variant": row.variant}
    notes = [
        {"night": decision.night, "event": decision.kind.replace("_", " "), "text": _words(decision)}
        for decision in decisions
        if all(getattr(decision, name) in (None, value) for name, value in about.items())
    ]
    conditions = " · ".join([row.precision, *conditions_of(row), counted(row.nights, "night")])
    name = f"{row.model} {row.precision} on {row.device}"
    facts = {"name": name, "model": row.model, "page": model_page(row.model), "device": row.device}
    facts["conditions"] = conditions
    facts["explain"] = shlex.join(["etfarm", "explain", row.series_id, "--device", row.device])
    return facts | ({"notes": notes} if notes else {})


def history_files(reader: Reader, wanted: Collection[tuple[str, date]]) -> Iterator[tuple[str, str]]:
    """Yield address and content of the file of each device and Monday in `wanted`; all are read at once."""
    mondays = [monday for _, monday in wanted]
    scope = {"devices": sorted({device for device, _ in wanted}), "first": min(mondays), "last": max(mondays) + _WEEK}
    rows: dict[tuple[str, date], dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for row in reader.rows(SeriesNightRow, scope):
        rows[row.device, row.night - timedelta(days=row.night.weekday())][row.series_id].append(_values_of(row))
    for device, monday in wanted:
        yield history_file(device, monday), f"farmHistory(...{as_json([_COLUMNS, rows[device, monday]])});\n"


def _words(decision: DecisionRow) -> str:
    night = f" {decision.night}" if decision.night else ""
    words = f"{decision.reason} ({decision.decided_by}, {decision.decided_at:%Y-%m-%d})"
    return f"{decision.kind.replace('_', ' ').capitalize()}{night}: {words}"
