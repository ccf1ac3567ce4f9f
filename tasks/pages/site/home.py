"""The home page: that of the newest night, and the farm."""

from dataclasses import replace

from tasks.pages.page import Block, Fold, Page, Paragraph, Section
from tasks.results.devices import NOT_OF_FARM_DEVICES, read_devices
from tasks.results.reader import Reader
from tasks.results.series import DecisionRow
from tasks.results.table import build_table, first_rows
from tasks.results.text import Code, counted

_MAX_DEVICES = 15


def page(reader: Reader, newest: Page | None) -> Page:
    """Return the home page from the page of the newest night; None: how to start the first sweep."""
    if newest is None:
        step = ("No night was measured yet. Start a sweep: ", Code("etfarm sweep deployments/sweeps/smoke.yaml"), ".")
        return Page("This morning", answer=step)
    return replace(newest, title="This morning", sections=[*newest.sections, _farm(reader)])


def _farm(reader: Reader) -> Section:
    """Return the devices, those without a succeeded session in the newest night first, and decisions of users."""
    devices = read_devices(reader)
    newest = max(row.night for row in devices if row.night)
    devices.sort(key=lambda row: (row.night == newest and row.succeeded > 0, -row.waited_s))
    absent = sum(row.night != newest for row in devices)
    measured = f"; not measured in the newest night: {absent:,}." if absent else ", all measured in the newest night."
    without = (*NOT_OF_FARM_DEVICES, "transport", "build")
    blocks: list[Block] = [
        Paragraph(f"{counted(len(devices), 'device').capitalize()}{measured}", tone="flag" if absent else ""),
        first_rows(devices, _MAX_DEVICES, "see Devices", without=without),
    ]
    if decisions := reader.rows(DecisionRow):
        title = f"{counted(len(decisions), 'decision or note', 'decisions and notes').capitalize()} in force"
        blocks.append(Fold(title, [build_table(decisions)]))
    return Section("farm", "The farm", blocks)
