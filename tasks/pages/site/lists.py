"""Pages with lists: nights, models, devices, runners, the gain of SME2, and two nights side by side."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from tasks.pages.page import Block, Page, Paragraph, Section
from tasks.pages.report import MAX_CELLS, short_sections
from tasks.pages.site.model import VERDICT_NEEDS
from tasks.pages.sme2 import sme2 as sme2_section
from tasks.results.addresses import model_page, night_page, slug
from tasks.results.compare import TwoNightsRow
from tasks.results.devices import NOT_OF_FARM_DEVICES, read_devices
from tasks.results.provenance import ONLY_OF_A_SWEEP, read_runners
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.series import NightRow, SeriesRow, UnjudgedModelRow
from tasks.results.sme2 import SpeedupRow
from tasks.results.table import Cell, Column, Table, first_rows, grouped, table_of
from tasks.results.text import Code, CodeLink, Link, Text, counted, joined
from tasks.results.verdicts import tone_of

_MAX_ROWS = 400
_IN_SQL = "etfarm sql lists all"


def _page(title: str, answer: Text, blocks: Sequence[Block]) -> Page:
    return Page(title, [Section("all", "All", blocks)] if blocks else [], answer=answer)


def nights(rows: Sequence[NightRow], every: Iterable[SweepRow]) -> Page:
    """Return the page of all nights and their sweeps; sweeps without a night (loose ETDumps) are left out."""
    sweeps = [sweep for sweep in every if sweep.night]
    answer = f"{counted(len(rows), 'night').capitalize()}, {counted(len(sweeps), 'sweep')}."
    blocks: list[Block] = [
        first_rows(rows, _MAX_ROWS, f"{_IN_SQL}: verdict"),
        Paragraph("Sweeps of these nights:"),
        first_rows(sweeps, _MAX_ROWS, f"{_IN_SQL}: sweep_overview"),
    ]
    return _page("Nights", answer, blocks)


def models(rows: Sequence[SeriesRow], unjudged: Sequence[UnjudgedModelRow]) -> Page:
    """Return the page of all models: the number of series by newest verdict, and models without one."""
    of_model = grouped(rows, lambda row: row.model)
    verdicts = list(dict.fromkeys(row.verdict for row in rows))
    columns = [
        Column("Model"),
        Column("Series", numeric=True),
        Column("Devices", numeric=True),
        Column("Precisions"),
        *(Column(verdict.capitalize(), numeric=True) for verdict in verdicts),
    ]
    lines = []
    for model, series in of_model.items():
        counts = Counter(row.verdict for row in series)
        line = [
            Cell((CodeLink(model, model_page(model)),)),
            Cell(f"{len(series):,}", sort=len(series)),
            Cell(str(len({row.device for row in series}))),
            Cell(", ".join(sorted({row.precision for row in series}))),
        ]
        lines.append(line + [_count(counts[verdict], verdict) for verdict in verdicts])
    answer = f"{counted(len(of_model), 'model').capitalize()}, {len(rows):,} series."
    if not rows:
        answer = f"No model has a verdict yet. A verdict needs {VERDICT_NEEDS}."
    blocks: list[Block] = [Table(columns, lines)] if lines else []
    if unjudged:
        blocks += [Paragraph("Models without a verdict:"), first_rows(unjudged, _MAX_ROWS, _IN_SQL)]
    return _page("Models", answer, blocks)


def _count(count: int, verdict: str) -> Cell:
    is_bad = tone_of(verdict) == "bad" and count
    return Cell(f"{count:,}", sort=count, tone="bad" if is_bad else "" if count else "quiet")


def devices(reader: Reader) -> Page:
    rows = read_devices(reader)
    answer = f"{counted(len(rows), 'device').capitalize()}."
    return _page("Devices", answer, [table_of(rows, without=NOT_OF_FARM_DEVICES)])


def runners(reader: Reader) -> Page:
    rows = read_runners(reader)
    answer = f"{counted(len(rows), 'runner').capitalize()}."
    table = first_rows(rows, _MAX_ROWS, f"{_IN_SQL}: runner_overview", without=ONLY_OF_A_SWEEP)
    return _page("Runners", answer, [table])


def sme2(reader: Reader, series: Sequence[SeriesRow], sweeps: Iterable[SweepRow]) -> Page:
    """Return the page about SME2 in the newest sweep of each name: what it gained, where, and by which kernels.

    Of a sweep whose devices times models are over MAX_CELLS, only the gain of each pair.
    """
    in_order = sorted(sweeps, key=lambda sweep: (sweep.night or date.min, sweep.sweep_id))
    newest = [Answers(reader, sweep) for sweep in {sweep.name: sweep for sweep in in_order}.values()]
    variants: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for row in series:
        variants[row.model, row.device, row.precision, row.threads].add(row.variant)
    # Without a series in two variants there is no pair; to find that in the cells takes seconds on a large farm.
    has_pairs = any(len(names) > 1 for names in variants.values())
    every = [row for answers in newest if answers.sweep.night for row in answers.rows(SpeedupRow)] if has_pairs else []
    rows = [row for row in every if row.sessions_on and row.sessions_off and not row.without_times]
    rows.sort(key=lambda row: -(row.speedup or 0.0))
    blocks = [first_rows(rows, _MAX_ROWS, f"{_IN_SQL}: sme2_speedup")] if rows else []
    page = _page("SME2", _gain(rows) if rows else _without_a_pair(reader, series), blocks)
    of_sweeps = [answers for answers in newest if answers.sweep.devices * answers.sweep.models <= MAX_CELLS]
    return replace(page, sections=[*page.sections, *map(_sme2_of, of_sweeps)])


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
        "none of them also with it off, so whether it pays is not known. Add both variants to the sweep file: ",
        Code("variants: [sme2_on, sme2_off]"),
        ".",
    )


def _gain(rows: Sequence[SpeedupRow]) -> Text:
    """Return the first and the last speed-up in a sentence; `rows` are sorted, the largest first."""
    answer = f"{counted(len(rows), 'pair').capitalize()} with SME2 on and off"
    sorted_rows = [row for row in rows if row.speedup is not None]
    if not sorted_rows:
        return f"{answer}."
    best, least = sorted_rows[0], sorted_rows[-1]
    return (
        f"{answer}; largest speed-up {best.speedup:.2f}\u00d7 ({best.model} {best.precision} on {best.device}), "
        f"least {least.speedup:.2f}\u00d7 ({least.model} {least.precision} on {least.device})."
    )


def _sme2_of(answers: Answers) -> Section:
    """Return the section about SME2 in the report of a sweep, with the sweep in title and anchor."""
    (section,), sweep_id = short_sections(answers, [sme2_section]), answers.sweep.sweep_id
    return replace(section, anchor=f"sme2-{slug(sweep_id)}", title=f"{section.title}: {sweep_id}")


def comparison(reader: Reader, before: date, after: date) -> Page:
    rows = reader.rows(TwoNightsRow, {"before": before, "after": after})
    both = [row for row in rows if row.ratio is not None]
    only = len(rows) - len(both)
    answer = joined(
        (Link(str(after), night_page(after)), " beside ", Link(str(before), night_page(before))),
        f": {counted(len(both), 'series', 'series')} in both nights"
        + (f", {only:,} in one of them." if only else ".")
        + " One night beside another says little alone: the verdict judges with all nights before.",
    )
    blocks: list[Block] = [first_rows(rows, _MAX_ROWS, f"`etfarm compare {before} {after}` lists all, with intervals")]
    return _page(f"{before} and {after}", answer, blocks)
