"""The page of a night, and the home page, which is that of the newest night and of the farm."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from tasks.pages.page import Block, Fold, Page, Paragraph, Points, Section
from tasks.pages.site.changes import MOST_ROWS, changes_of, devices_of
from tasks.pages.site.matrix import KEY, matrix
from tasks.results import addresses
from tasks.results.devices import NOT_OF_FARM_DEVICES, read_devices
from tasks.results.reader import Reader, SweepRow
from tasks.results.series import DecisionRow, NightRow
from tasks.results.sessions import NightFailureRow
from tasks.results.table import first_rows, table_of
from tasks.results.text import Code, Link, Text, Tone, counted, joined
from tasks.results.verdicts import TONES, Verdict, headline, of_latency

_LOUD = ("regression", "inaccurate", "failed", "suspected", "device slower")


def page(reader: Reader, newest: Page | None) -> Page:
    """Return the home page from the page of the newest night; None: how to start the first sweep."""
    if newest is None:
        step = ("No night was measured yet. Start a sweep: ", Code("etfarm sweep deployments/sweeps/smoke.yaml"), ".")
        return Page("This morning", answer=step)
    return replace(newest, title="This morning", sections=[*newest.sections, _farm(reader)])


def night_page(reader: Reader, night: date, nights: Sequence[NightRow], rows: Sequence[Verdict]) -> Page:
    """Return the page of a night from its verdicts; `nights` are all nights, the newest first."""
    latency = of_latency(rows)
    sections = [
        *([Section("changed", "What changed", [*changes_of(reader, rows, night)])] if rows else []),
        *([Section("devices", "Devices that moved", [Points(moved)])] if (moved := devices_of(latency)) else []),
        *([Section("matrix", "Models and devices", [matrix(latency), Paragraph(KEY, "quiet")])] if latency else []),
        Section("sessions", "How it ran", [*_ran(reader, night)]),
    ]
    answer = headline(rows) if rows else joined(f"{headline(rows)} ", _without_times(reader))
    tone: Tone = next((TONES[verdict] for verdict in _LOUD if any(row.verdict == verdict for row in rows)), "")
    return Page(f"Night of {night}", sections, _neighbours(night, nights), answer, tone)


def _without_times(reader: Reader) -> Text:
    """Return what to do after a night without verdicts."""
    if any(row.without_times is None for row in read_devices(reader)):
        return "How its sweeps ran is below."
    return (
        "Emulated and simulated devices have no times; ",
        Link("SME2", "sme2.html"),
        " shows which kernels they ran. For times, add a real device to the inventory and check it: ",
        Code("etfarm devices --inventory FILE"),
        ".",
    )


def _neighbours(night: date, nights: Sequence[NightRow]) -> Text:
    """Return the weekday of a night, and links to the nights before and after it."""
    earlier = next((row.night for row in nights if row.night < night), None)
    later = next((row.night for row in reversed(nights) if row.night > night), None)
    text: list[str] = [f"{night:%A}, {night}"]
    if earlier:
        text += [" · ", Link(f"night before: {earlier}", addresses.night_page(earlier))]
        text += [" · ", Link("compare with it", addresses.comparison_page(earlier, night))]
    if later:
        text += [" · ", Link(f"night after: {later}", addresses.night_page(later))]
    return tuple(text)


def _ran(reader: Reader, night: date) -> Iterator[Block]:
    """Yield the sweeps of a night, and what failed in them."""
    sweeps = [row for row in reader.rows(SweepRow) if row.night == night]
    yield table_of(sweeps, without=("name", "night"))
    failed = reader.rows(NightFailureRow, {"night": night})
    if failed:
        count = sum(row.sessions for row in failed)
        yield Paragraph(f"{counted(count, 'session').capitalize()} failed or invalid:", tone="flag")
        yield first_rows(failed, MOST_ROWS, "etfarm sql lists them in the view failed_session")
    else:
        yield Paragraph("Every session has a result.")


def _farm(reader: Reader) -> Section:
    """Return the devices, those without a succeeded session in the newest night first, and decisions of users."""
    devices = read_devices(reader)
    newest = max(row.night for row in devices if row.night)
    devices.sort(key=lambda row: (row.night == newest and row.succeeded > 0, -row.waited_s))
    absent = [row for row in devices if row.night != newest]
    summary = f"{counted(len(devices), 'device').capitalize()}" + (
        f"; not measured in the newest night: {len(absent):,}." if absent else ", all measured in the newest night."
    )
    blocks: list[Block] = [
        Paragraph(summary, tone="flag" if absent else ""),
        first_rows(devices, 15, "see Devices", without=(*NOT_OF_FARM_DEVICES, "transport", "build")),
    ]
    decisions = reader.rows(DecisionRow)
    if decisions:
        title = f"{counted(len(decisions), 'decision or note', 'decisions and notes').capitalize()} in force"
        blocks.append(Fold(title, [table_of(decisions)]))
    return Section("farm", "The farm", blocks)
