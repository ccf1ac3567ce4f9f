"""The page of a night, and the home page, which is that of the newest night and of the farm.

What changed comes first, by what it adds to a run; nights of a device are apart from changes of models.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

from tasks.analyse.report.addresses import comparison_page, device_page, night_page, series_page
from tasks.analyse.report.cells import conditions_of
from tasks.analyse.report.columns import table_of
from tasks.analyse.report.data import Reader
from tasks.analyse.report.page import Block, Cell, Code, Column, Fold, Link, Page, Paragraph, Points, Section, Table, Text, Tone
from tasks.analyse.report.sections.verdicts import VerdictRow, change_of, headline
from tasks.analyse.report.text import counted, joined, sentence
from tasks.analyse.site.matrix import KEY, matrix
from tasks.analyse.site.rows import (
    DecisionRow,
    FarmDeviceRow,
    HistoryRow,
    NightFailureRow,
    NightRow,
    NightSweepRow,
    NightVerdictRow,
)
from tasks.analyse.verdict.metrics import LATENCY

_MOST_ROWS = 50
_MOST_STEPS = 5
_HIDDEN = "the pages of models and devices list all series"
_CHANGES = ("regression", "inaccurate", "suspected", "improvement")
_LOUD: dict[str, Tone] = {"regression": "bad", "inaccurate": "bad", "suspected": "flag", "device slower": "flag"}
_WITHOUT = ("metric", "noise_floor", "baseline_nights", "differs")


def home(reader: Reader, footer: str) -> Page:
    """Return this morning's page; before the first night, how to get one."""
    nights = reader.rows(NightRow)
    if not nights:
        step = ("No night was measured yet. Start a sweep: ", Code("etfarm sweep deployments/sweeps/smoke.yaml"), ".")
        return Page("This morning", "", (), (), (), footer, "index.html", answer=step)
    page = night_of(reader, nights[0].night, nights, footer)
    return replace(page, title="This morning", address="index.html", sections=[*page.sections, *_farm(reader)])


def night_of(reader: Reader, night: date, nights: Sequence[NightRow], footer: str) -> Page:
    """Return the page of a night."""
    rows = reader.rows(NightVerdictRow, {"night": night})
    latency = [row for row in rows if row.metric == LATENCY.name]
    sections = [
        Section("changed", "What changed", [*_models(reader, rows, night)]),
        *_devices(latency),
        *([Section("matrix", "Models and devices", [matrix(latency), Paragraph(KEY, "quiet")])] if latency else []),
        Section("sessions", "How it ran", [*_ran(reader, night)]),
    ]
    return Page(
        title=f"Night of {night}",
        subtitle=_neighbours(night, nights),
        figures=(),
        summary=(),
        sections=sections,
        footer=footer,
        address=night_page(night),
        answer=headline(rows),
        tone=next((_LOUD[verdict] for verdict in _LOUD if any(row.verdict == verdict for row in rows)), ""),
    )


def _neighbours(night: date, nights: Sequence[NightRow]) -> Text:
    """The weekday of a night, and links to the nights around it."""
    earlier = next((row.night for row in nights if row.night < night), None)
    later = next((row.night for row in reversed(nights) if row.night > night), None)
    text: list[str] = [f"{night:%A}, {night}"]
    if earlier:
        text += [" · ", Link(f"night before: {earlier}", night_page(earlier))]
        text += [" · ", Link("compare with it", comparison_page(earlier, night))]
    if later:
        text += [" · ", Link(f"night after: {later}", night_page(later))]
    return tuple(text)


def _models(reader: Reader, rows: Sequence[NightVerdictRow], night: date) -> Iterator[Block]:
    """What changed in models, with history and cause, and what to do first."""
    latency = [row for row in rows if row.metric == LATENCY.name and row.verdict in _CHANGES]
    others = [row for row in rows if row.metric != LATENCY.name]
    latency.sort(key=lambda row: (row.verdict == "improvement", -abs(row.impact_ms)))
    if not latency and not others:
        yield Paragraph("No model changed.")
    if latency:
        yield _changes(reader, latency, night)
        yield Points([_step(reader, row) for row in latency[:_MOST_STEPS]])
    if others:
        yield Paragraph("Other figures than latency that changed:")
        without = ("ratio", "low", "noise_floor", "baseline_nights", "cause")
        yield table_of(others, without=without).shortened(_MOST_ROWS, _HIDDEN)


def _changes(reader: Reader, rows: Sequence[NightVerdictRow], night: date) -> Table:
    """The table of changes, with what each adds to one run and the last 30 nights."""
    shown = rows[:_MOST_ROWS]
    asked = {"night": night, "series": [row.series_id + row.device for row in shown]}
    history = {(row.series_id, row.device): row.times_ms for row in reader.rows(HistoryRow, asked)}
    impact = Column("Adds", "ms per run", "after less before", numeric=True)
    nights = Column("30 nights")
    cells = [
        [
            Cell(f"{row.impact_ms:+,.3f}", sort=row.impact_ms),
            Cell((Link("history", series_page(row.series_id, row.device)),), line=tuple(history[row.series_id, row.device])),
        ]
        for row in shown
    ]
    table = table_of(shown, without=_WITHOUT).with_columns([impact, nights], cells)
    order = _moved(table.columns, "Adds", after="Change")
    table = replace(table, columns=_picked(table.columns, order), rows=[_picked(row, order) for row in table.rows])
    hidden = len(rows) - len(shown)
    return replace(table, caption="Changes, the largest first", hidden=f"{hidden:,} more changes: {_HIDDEN}" if hidden else "")


def _moved(columns: Sequence[Column], title: str, after: str) -> list[int]:
    """The positions of columns with one of them moved behind another one."""
    titles = [column.title for column in columns]
    moved = titles.index(title)
    order = [place for place in range(len(titles)) if place != moved]
    order.insert(order.index(titles.index(after)) + 1, moved)
    return order


def _picked(items: Sequence, order: Sequence[int]) -> list:
    return [items[place] for place in order]


def _step(reader: Reader, row: VerdictRow) -> Text:
    """What is known about a change, and the command that looks closer."""
    name = Link(f"{row.model} {row.precision}", series_page(row.series_id, row.device))
    where = f" on {row.device}{''.join(f', {each}' for each in conditions_of(row))}"
    return joined((name, f"{where}: {sentence(row.reason)}"), " Look closer: ", (Code(command_for(reader, row)),))


def command_for(reader: Reader, row: VerdictRow) -> str:
    """Return the command that compares the night with the last good one, from the same snapshot."""
    model = reader.models.get(row.model, row.model)
    words = ["etfarm", "compare", str(row.baseline_to or row.night - timedelta(days=1)), str(row.night)]
    return shlex.join([*words, "--model", model, "--device", row.device, "--precision", row.precision])


def _devices(rows: Iterable[NightVerdictRow]) -> list[Section]:
    """Devices on which series moved although neither model nor runner changed, a line each."""
    moved = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row.device] += 1
        if row.verdict.startswith("device"):
            moved[row.device].append(row)
    if not moved:
        return []
    lines = []
    for device, of_device in sorted(moved.items(), key=lambda item: -len(item[1])):
        ratios = sorted(row.ratio or 1.0 for row in of_device)
        spread = f"{change_of(ratios[0])} to {change_of(ratios[-1])} %" if len(ratios) > 1 else f"{change_of(ratios[0])} %"
        lines.append(
            (
                Link(device, device_page(device)),
                f": {len(of_device)} of {counts[device]} series {of_device[0].verdict.removeprefix('device ')}, {spread}; "
                f"neither models nor runner changed{_why(of_device)}. Check the device, not the models.",
            )
        )
    return [Section("devices", "Devices that moved", [Points(lines)])]


def _why(rows: Sequence[NightVerdictRow]) -> str:
    changed = {row.changed for row in rows if row.changed}
    return f"; what did: {', '.join(sorted(changed))}" if changed else ""


def _ran(reader: Reader, night: date) -> Iterator[Block]:
    """The sweeps of a night, and what failed in them."""
    yield table_of(reader.rows(NightSweepRow, {"night": night}), without=("name", "night"))
    failed = reader.rows(NightFailureRow, {"night": night})
    if failed:
        count = sum(row.sessions for row in failed)
        yield Paragraph(f"{counted(count, 'session').capitalize()} failed or invalid:", tone="flag")
        yield table_of(failed).shortened(_MOST_ROWS, "etfarm sql lists them in the view failed_session")
    else:
        yield Paragraph("Every session has a result.")


def _farm(reader: Reader) -> list[Section]:
    """The devices of the farm, the ones that need a look first, and what users decided."""
    devices = reader.rows(FarmDeviceRow)
    newest = max(row.night for row in devices)
    devices.sort(key=lambda row: (row.night == newest and row.succeeded > 0, -row.waited_s))
    absent = [row for row in devices if row.night < newest]
    says = f"{counted(len(devices), 'device').capitalize()}" + (
        f"; not measured in the newest night: {len(absent):,}." if absent else ", all measured in the newest night."
    )
    blocks: list[Block] = [
        Paragraph(says, tone="flag" if absent else ""),
        table_of(devices, without=("transport", "build")).shortened(15, "see Devices"),
    ]
    decisions = reader.rows(DecisionRow)
    if decisions:
        title = f"{counted(len(decisions), 'decision or note', 'decisions and notes').capitalize()} in force"
        blocks.append(Fold(title, [table_of(decisions)]))
    return [Section("farm", "The farm", blocks)]

