"""The page about SME2: what it gained, where, and by which kernels."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from tasks.pages.page import MAX_LISTED, Page, Section
from tasks.pages.report import MAX_CELLS, short_sections
from tasks.pages.sections.sme2 import sme2
from tasks.results.addresses import slug
from tasks.results.devices import read_devices
from tasks.results.measurements.sme2 import SpeedupRow
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.series import SeriesRow
from tasks.results.table import first_rows
from tasks.results.text import TIMES, Code, Text, counted


def page(reader: Reader, series: Sequence[SeriesRow], sweeps: Iterable[SweepRow]) -> Page:
    """Return the page about SME2 in the newest sweep of each name.

    First the gains of all pairs of several sweeps, at most MAX_LISTED; then the report's section of each sweep whose
    devices times models are at most MAX_CELLS.
    """
    newest = [Answers(reader, sweep) for sweep in _newest_of_each_name(sweeps)]
    rows = _measured_pairs(newest) if _has_pairs(series) else []
    sections = []
    detailed = [answers for answers in newest if answers.sweep.devices * answers.sweep.models <= MAX_CELLS]
    if rows and not newest == detailed == newest[:1]:  # else the section of the sweep has the same table
        sections.append(Section("all", "All", [first_rows(rows, MAX_LISTED, "etfarm sql lists all: sme2_speedup")]))
    for answers in detailed:
        (section,), sweep_id = short_sections(answers, [sme2]), answers.sweep.sweep_id
        sections.append(replace(section, anchor=f"sme2-{slug(sweep_id)}", title=f"{section.title}: {sweep_id}"))
    return Page("SME2", sections, answer=_speedup_range(rows) if rows else _without_a_pair(reader, series))


def _newest_of_each_name(sweeps: Iterable[SweepRow]) -> Iterable[SweepRow]:
    in_order = sorted(sweeps, key=lambda sweep: (sweep.night or date.min, sweep.sweep_id))
    return {sweep.name: sweep for sweep in in_order}.values()


def _has_pairs(series: Sequence[SeriesRow]) -> bool:
    """Return whether series differ only in their variant; to find that in the cells takes seconds on a large farm."""
    variants: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for row in series:
        variants[row.model, row.device, row.precision, row.threads].add(row.variant)
    return any(len(names) > 1 for names in variants.values())


def _measured_pairs(sweeps: Iterable[Answers]) -> list[SpeedupRow]:
    """Return the pairs on real devices with sessions with SME2 on and with it off, the largest speed-up first."""
    every = [row for answers in sweeps if answers.sweep.night for row in answers.rows(SpeedupRow)]
    rows = [row for row in every if row.sessions_on and row.sessions_off and not row.without_times]
    return sorted(rows, key=lambda row: -(row.speedup or 0.0))


def _speedup_range(rows: Sequence[SpeedupRow]) -> str:
    """Return the first and the last speed-up in a sentence; `rows` are sorted, the largest first."""
    answer = f"{counted(len(rows), 'pair').capitalize()} with SME2 on and off"
    with_speedup = [row for row in rows if row.speedup is not None]
    if not with_speedup:
        return f"{answer}."
    largest, smallest = (
        f"{row.speedup:.2f}{TIMES} ({row.model} {row.precision} on {row.device})"
        for row in (with_speedup[0], with_speedup[-1])
    )
    return f"{answer}; largest speed-up {largest}, smallest {smallest}."


def _without_a_pair(reader: Reader, series: Sequence[SeriesRow]) -> Text:
    """Return which devices have SME2 and which series used it, although its gain is unknown, and how to measure it."""
    every = read_devices(reader)
    devices = [row for row in every if not row.without_times]
    have = sum(bool(row.sme2) for row in devices)
    on = sum(row.variant == "sme2_on" for row in series)
    if not have and not on and any(row.sme2 for row in every):
        return (
            "Only emulated or simulated devices of this farm have SME2: they show coverage and kernels, and no times. "
            "For a speed-up, add a real device with SME2 to the inventory."
        )
    if not have and not on:
        return "No real device of this farm is known to have SME2, and nothing ran with it."
    return (
        f"Real devices that are known to have SME2: {have:,} of {len(devices):,}. Series that ran with it on: {on:,}, ",
        "none of them also with it off, so its gain is unknown. Add both variants to the sweep file: ",
        Code("variants: [sme2_on, sme2_off]"),
        ".",
    )
