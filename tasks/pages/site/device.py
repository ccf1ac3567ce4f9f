"""The pages of a device and of all devices. A device: its facts, nights, series, and their histories as files.

`templates/series.js.j2` draws the series that the address names. A file has all series of a device in one week, so
that one more night changes one small file of each device, and no page of a series.
"""

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from datetime import date, timedelta
from operator import attrgetter
from typing import Any

from tasks.pages import incidents
from tasks.pages.html import as_json
from tasks.pages.page import Histories, Page, Paragraph, Section
from tasks.pages.report import MAX_ROWS
from tasks.results.addresses import history_file, model_page, night_page
from tasks.results.cells import emulation_tags
from tasks.results.devices import NOT_OF_FARM_DEVICES, DeviceNightRow, DeviceRow, read_devices
from tasks.results.incidents import IncidentRow, open_incidents
from tasks.results.measurements.roofline import DeviceRoofRow
from tasks.results.reader import Reader
from tasks.results.series import DecisionRow, SeriesNightRow, SeriesRow, bad_if_any, counts_in_words
from tasks.results.table import build_table, first_rows
from tasks.results.text import Link, counted, series_conditions

_MAX_NIGHTS = 30
_WEEK = timedelta(days=7)
_COLUMNS = [field.name for field in fields(SeriesNightRow) if field.name not in ("series_id", "device")]
_history_values = attrgetter(*_COLUMNS)


def list_page(reader: Reader) -> Page:
    rows = read_devices(reader)
    sections = [Section("all", "All", [build_table(rows, without=NOT_OF_FARM_DEVICES)])]
    return Page("Devices", sections, answer=f"{counted(len(rows), 'device').capitalize()}.")


def page(
    row: DeviceRow,
    nights: Sequence[DeviceNightRow],
    rows: Sequence[SeriesRow],
    decisions: Sequence[DecisionRow],
    every_incident: Sequence[IncidentRow],
    roofs: Sequence[DeviceRoofRow],
) -> Page:
    """Return the page of a device; `rows` are its series, and `roofs` those of all devices."""
    without_series = "No series of this device was judged yet."
    if row.without_times:
        without_series = f"This device is {row.without_times}: its times mean nothing, are not shown and never ranked."
    in_sql = "etfarm sql lists them in session_overview"
    of_device = open_incidents(every_incident, rows)
    sections = [
        *incidents.section(of_device, rows),
        Section("facts", "What it is", [build_table([row], without=NOT_OF_FARM_DEVICES)]),
    ]
    if roof := [each for each in roofs if each.device == row.device]:
        sections.append(Section("roof", "What it can do at most", [build_table(roof)]))
    if rows:
        files = [history_file(row.device, monday) for monday in list_weeks(rows)]
        facts = {each.series_id: _series_facts(each, decisions, open_incidents(of_device, [each])) for each in rows}
        histories = Histories(files, facts)
        sections.append(Section("history", "History", [histories]))
    series = first_rows(rows, MAX_ROWS, "see the models", without=("device",)) if rows else Paragraph(without_series)
    sections += [
        Section("series", "Series", [series]),
        Section("nights", "Nights", [first_rows(nights, _MAX_NIGHTS, in_sql, without=("device",))]),
    ]
    newest = (" newest night: ", Link(str(row.night), night_page(row.night))) if row.night else ()
    subtitle = (*emulation_tags(row.without_times), *newest)
    answer = counts_in_words(rows) if rows else without_series
    return Page(f"Device {row.device}", sections, subtitle, answer, bad_if_any(rows))


def list_weeks(series: Sequence[SeriesRow]) -> list[date]:
    """Return the Monday of each week in which any of the series has a night, the oldest first."""
    return sorted({monday for row in series for monday in row.weeks})


def _series_facts(row: SeriesRow, decisions: Sequence[DecisionRow], of_series: Sequence[IncidentRow]) -> dict[str, Any]:
    """Return what the script shows of a series besides its nights: names, conditions, a command, incidents, notes."""
    notes = [{"night": each.onset, "event": "incident", "text": each.line} for each in of_series]
    notes += _notes_on(row, decisions)
    facts = {
        "name": f"{row.model} {row.precision} on {row.device}",
        "model": row.model,
        "page": model_page(row.model),
        "device": row.device,
        "conditions": " · ".join([row.precision, *series_conditions(row), counted(row.nights, "night")]),
        "explain": shlex.join(["etfarm", "explain", row.series_id, "--device", row.device]),
    }
    return facts | ({"notes": notes} if notes else {})


def _notes_on(row: SeriesRow, decisions: Sequence[DecisionRow]) -> list[dict[str, Any]]:
    """Return the night, the kind and the text of each decision that is about a series."""
    names = ("model", "device", "precision", "variant")
    notes = []
    for decision in decisions:
        if all(getattr(decision, name) in (None, getattr(row, name)) for name in names):
            event = decision.kind.replace("_", " ")
            title = f"{event.capitalize()} {decision.night}" if decision.night else event.capitalize()
            text = f"{title}: {decision.reason} ({decision.decided_by}, {decision.decided_at:%Y-%m-%d})"
            notes.append({"night": decision.night, "event": event, "text": text})
    return notes


def history_files(reader: Reader, weeks: Collection[tuple[str, date]]) -> Iterator[tuple[str, str]]:
    """Yield address and content of the file of each device and Monday in `weeks`; all are read at once."""
    mondays = [monday for _, monday in weeks]
    scope = {"devices": sorted({device for device, _ in weeks}), "first": min(mondays), "last": max(mondays) + _WEEK}
    rows: dict[tuple[str, date], dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for row in reader.rows(SeriesNightRow, scope):
        rows[row.device, row.night - timedelta(days=row.night.weekday())][row.series_id].append(_history_values(row))
    for device, monday in weeks:
        yield history_file(device, monday), f"farmHistory(...{as_json([_COLUMNS, rows[device, monday]])});\n"
