"""The pages of a device and of all devices. A device: its facts, nights, series, and their histories as files.

`templates/scripts/series.js.j2` draws the series that the address names. A file has all series of a device in one
week, so that one more night changes one small file of each device, and no page of a series.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date, timedelta
from operator import attrgetter
from typing import Any

from tasks.bundle.model_names import case_title
from tasks.judge.figures import LATENCY, METRICS
from tasks.pages.html import as_json
from tasks.pages.page import Histories, Page, Paragraph, Points, Section
from tasks.pages.sections import incidents
from tasks.pages.sections.worst_series import COLUMNS, WITHOUT, worst_first
from tasks.results.addresses import device_page, history_file, model_page, night_page
from tasks.results.cells import emulation_tags
from tasks.results.devices import NOT_OF_FARM_DEVICES, DeviceBuildRow, DeviceNightRow, DeviceRow, read_devices
from tasks.results.glances.device_attention import DeviceAttention
from tasks.results.glances.incident_cards import IncidentCard, limit_to_series
from tasks.results.incidents import OUTCOMES
from tasks.results.measurements.roofline import DeviceRoofRow
from tasks.results.reader import Reader
from tasks.results.series import (
    DecisionRow,
    SeriesIncidentRow,
    SeriesNightRow,
    SeriesRow,
)
from tasks.results.table import Cell, Column, Table, build_table, first_rows, grouped
from tasks.results.text import DASH, Link, counted, series_conditions, series_title

_MAX_NIGHTS, _MAX_SERIES = 30, 100
_WEEK = timedelta(days=7)
_COLUMNS = [field.name for field in fields(SeriesNightRow) if field.name not in ("series_id", "device")]
_history_values = attrgetter(*_COLUMNS)


def list_page(reader: Reader, series: Mapping[str, Sequence[SeriesRow]], findings: Sequence[DeviceAttention]) -> Page:
    """Return the page of all devices: those with series, the worst first, then those without one.

    `series` are those of each device, and `findings` what needs attention on it.
    """
    rows = {row.device: row for row in read_devices(reader)}
    cells = worst_first(reader, {name: series[name] for name in rows if series.get(name)}, "device")
    lines = []
    for name in [*cells, *(name for name in rows if name not in cells)]:
        row = rows[name]
        what = ", ".join(filter(None, [row.soc or row.device_model, row.system]))
        head = [Cell((Link(name, device_page(name)), *emulation_tags(row.without_times))), Cell(what or DASH)]
        lines.append([*head, *cells.get(name, WITHOUT)])
    columns = [Column("Device"), Column("Processor, system", wraps=True), *COLUMNS]
    sections = [Section("all", "All", [Table(columns, lines)])]
    if texts := [each.line for each in findings if each.reasons]:
        sections.insert(0, Section("findings", "Devices that need attention", [Points(texts)]))
    without = len(rows) - len(cells)
    rest = f", {counted(without, 'device')} without a series" if without else ""
    answer = f"{counted(len(rows), 'device').capitalize()}{rest}. The worst is first."
    return Page("Devices", sections, answer=answer)


def page(
    row: DeviceRow,
    nights: Sequence[DeviceNightRow],
    rows: Sequence[SeriesRow],
    decisions: Sequence[DecisionRow],
    incidents_of: tuple[Sequence[IncidentCard], Sequence[SeriesIncidentRow]],
    abilities: tuple[Sequence[DeviceRoofRow], Sequence[DeviceBuildRow]],
) -> Page:
    """Return the page of a device; `rows` are its series, and `abilities` roofs and new builds of all devices.

    `incidents_of` are the cards of open incidents, and the parts of all that are about this device.
    """
    cards, parts = incidents_of
    without_series = "No series of this device was judged yet."
    if row.without_times:
        without_series = f"This device is {row.without_times}: its times mean nothing, are not shown and never ranked."
    in_sql = "etfarm sql lists them in session_overview"
    of_device = limit_to_series(cards, rows)
    sections = [
        *incidents.section(of_device),
        Section("facts", "What it is", [build_table([row], without=NOT_OF_FARM_DEVICES)]),
    ]
    roofs, builds = abilities
    if build := [each.text for each in builds if each.device == row.device and rows]:
        sections.insert(0, Section("build", "Another build", [Points(build)]))
    if roof := [each for each in roofs if each.device == row.device]:
        sections.append(Section("roof", "What it can do at most", [build_table(roof)]))
    if rows:
        sections.append(Section("history", "History", [_histories(row, rows, decisions, of_device, parts)]))
    series = first_rows(rows, _MAX_SERIES, "see the models", without=("device",)) if rows else Paragraph(without_series)
    sections += [
        Section("series", "Series", [series]),
        Section("nights", "Nights", [first_rows(nights, _MAX_NIGHTS, in_sql, without=("device",))]),
    ]
    newest = (" newest night: ", Link(str(row.night), night_page(row.night))) if row.night else ()
    subtitle = (*emulation_tags(row.without_times), *newest)
    answer, tone = incidents.answer(of_device, rows) if rows else (without_series, "")
    return Page(f"Device {row.device}", sections, subtitle, answer, tone)


def list_weeks(series: Sequence[SeriesRow]) -> list[date]:
    """Return the Monday of each week in which any of the series has a night, the oldest first."""
    return sorted({monday for row in series for monday in row.weeks})


def _histories(
    device: DeviceRow,
    rows: Sequence[SeriesRow],
    decisions: Sequence[DecisionRow],
    of_device: Sequence[IncidentCard],
    parts: Sequence[SeriesIncidentRow],
) -> Histories:
    """Return what the script shows of the series of a device besides their nights."""
    lines = {each.incident.incident_id: each.incident.line for each in of_device}
    of_series = grouped(parts, lambda part: part.series_id)
    of_title = grouped(rows, series_title)
    series = {}
    for row in rows:
        same_title = of_title[series_title(row)]
        ends = {"ends": (row.first_night, row.night)} if len(same_title) > 1 else {}
        facts = {**_series_facts(row), **ends, **_builds(row, same_title)}
        if about := [at for at, decision in enumerate(decisions) if _is_about(decision, row)]:
            facts["notes"] = about
        if row.series_id in of_series:
            facts["incidents"] = [_onset(part) for part in of_series[row.series_id]]
        series[row.series_id] = facts
    files = [history_file(device.device, monday) for monday in list_weeks(rows)]
    metrics = {metric.name: metric.unit for metric in METRICS.values()}
    return Histories(device.device, files, series, [_note(decision) for decision in decisions], lines, metrics)


def _series_facts(row: SeriesRow) -> dict[str, Any]:
    """Return what the script shows of a series besides nights and events: a device may have hundreds of them."""
    conditions = [*series_conditions(row), counted(row.nights, "night")]
    page = model_page(row.model)
    title = {} if (title := case_title(row.model)) == row.model else {"title": title}
    conditions_text = " · ".join(conditions)
    return {"model": row.model, **title, "page": page, "precision": row.precision, "conditions": conditions_text}


def _builds(row: SeriesRow, same_title: Sequence[SeriesRow]) -> dict[str, Any]:
    """Return the OS build of a series, and the series before and after it with other builds; empty without them."""
    same = [each for each in same_title if each.os_build != row.os_build]
    before = max((each for each in same if each.night < row.first_night), key=lambda each: each.night, default=None)
    after = min((each for each in same if each.first_night > row.night), key=lambda each: each.night, default=None)
    ends = {
        "before": before and {"id": before.series_id, "build": before.os_build, "night": before.night},
        "after": after and {"id": after.series_id, "build": after.os_build, "night": after.first_night},
    }
    return {"build": row.os_build, **{end: each for end, each in ends.items() if each}} if before or after else {}


def _onset(part: SeriesIncidentRow) -> dict[str, Any]:
    """Return a figure of a series in an incident."""
    worse = "slower" if part.metric == LATENCY.name else f"{part.metric} worse"
    name = f"{OUTCOMES.get(part.kind, worse)}, {part.state}"
    ends = {"night": part.onset, "closed": part.closed_on}
    return {"id": part.incident_id, "name": name, "metric": part.metric, **ends}


def _is_about(decision: DecisionRow, row: SeriesRow) -> bool:
    names = ("model", "device", "precision", "variant")
    return all(getattr(decision, name) in (None, getattr(row, name)) for name in names)


def _note(decision: DecisionRow) -> dict[str, Any]:
    """Return the night, the kind and the text of a decision."""
    event = decision.kind.replace("_", " ")
    title = f"{event.capitalize()} {decision.night}" if decision.night else event.capitalize()
    text = f"{title}: {decision.reason} ({decision.decided_by}, {decision.decided_at:%Y-%m-%d})"
    return {"night": decision.night, "event": event, "text": text}


def history_files(reader: Reader, weeks: Collection[tuple[str, date]]) -> Iterator[tuple[str, str]]:
    """Yield address and content of the file of each device and Monday in `weeks`; all are read at once."""
    mondays = [monday for _, monday in weeks]
    scope = {"devices": sorted({device for device, _ in weeks}), "first": min(mondays), "last": max(mondays) + _WEEK}
    rows: dict[tuple[str, date], dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for row in reader.rows(SeriesNightRow, scope):
        rows[row.device, row.night - timedelta(days=row.night.weekday())][row.series_id].append(_history_values(row))
    for device, monday in weeks:
        yield history_file(device, monday), f"farmHistory(...{as_json([_COLUMNS, rows[device, monday]])});\n"
