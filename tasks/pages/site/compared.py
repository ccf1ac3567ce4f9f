"""Pages with two devices, models, precisions or variants side by side, as `etfarm compare` prints them."""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from devices.errors import InputError
from tasks.pages.page import Block, Choice, Page, Paragraph, Points, Section
from tasks.results.addresses import arms_page, cell_page, slug
from tasks.results.changes import (
    Comparison,
    SeriesChange,
    answer_text,
    memory_change,
    series_name,
    size_change,
    time_text,
    worst_first,
)
from tasks.results.compare import InterleavedRow, compare_arms
from tasks.results.reader import Reader
from tasks.results.series import NightRow, SeriesRow
from tasks.results.table import Cell, Column, Table, first_rows
from tasks.results.text import DASH, Code, Link, Tone, counted, with_code

_KINDS = {"variant": "Variants", "precision": "Precisions", "device": "Devices"}
_MOST_PAIRS = 15
_MOST_ROWS = 400
_TONES: dict[str, Tone] = {"slower": "bad", "inaccurate": "bad", "faster": "good", "device slower": "flag"}


def values_of(kind: str, series: Sequence[SeriesRow]) -> list[str]:
    """Return the sorted devices, models, precisions or variants of the farm, by `kind`; empty for another kind."""
    return sorted({getattr(row, kind) for row in series}) if kind in (*_KINDS, "model") else []


def pairs_of(series: Sequence[SeriesRow]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, A and B of the pairs that the list of comparisons links to: the first 15 of each kind."""
    for kind in _KINDS:
        yield from ((kind, a, b) for a, b in islice(combinations(values_of(kind, series), 2), _MOST_PAIRS))


def choices(reader: Reader, series: Sequence[SeriesRow], nights: Sequence[NightRow]) -> Page:
    """Return the page with links to comparisons of nights, variants, precisions and devices, and interleaved ones."""
    sections = []
    if len(nights) > 1:
        days = {str(row.night): str(row.night) for row in nights}
        choice = Choice("Nights", days, "comparisons/{a}..{b}.html", "etfarm compare {a} {b}")
        sections.append(Section("night", "Nights", [choice]))
    pairs = list(pairs_of(series))
    for kind, title in _KINDS.items():
        links = [(Link(f"{a} and {b}", arms_page(kind, a, b)),) for pair_kind, a, b in pairs if pair_kind == kind]
        if links:
            names = {value: slug(value) for value in values_of(kind, series)}
            choice = Choice(
                title, names, f"comparisons/{kind}/{{a}}..{{b}}.html", f"etfarm compare {kind}:{{a}} {kind}:{{b}}"
            )
            sections.append(Section(kind, title, [choice, Points(links)]))
    if measured := reader.rows(InterleavedRow):
        table = first_rows(measured, _MOST_ROWS, "etfarm sql lists all: comparison")
        sections.append(Section("turns", "Measured in turns", [table]))
    answer = (
        f"{counted(len(pairs), 'pair').capitalize()} of the newest sweep that has both sides, "
        f"{counted(len(measured), 'comparison')} measured in turns. Any other: ",
        Code("etfarm compare A B"),
        ".",
    )
    return Page("Compare", sections, answer=answer)


def side_by_side(reader: Reader, kind: str, a: str, b: str) -> Page:
    """Return the page of two arms; if they have no series in common, a page that states it."""
    title = f"{a} and {b}"
    try:
        comparison = compare_arms(reader, f"{kind}:{a}", f"{kind}:{b}")
    except InputError as error:
        return Page(title, answer=f"{error}.", tone="flag")
    blocks: list[Block] = [_table(comparison).shortened(_MOST_ROWS, Code(f"etfarm compare {kind}:{a} {kind}:{b}"))]
    remarks = [*comparison.remarks, *(f"{each.word}: {series_name(each)}" for each in comparison.uncompared)]
    if remarks:
        blocks.append(Points(remarks[:_MOST_PAIRS]))
        hidden = len(remarks) - _MOST_PAIRS
        blocks += [Paragraph(f"{hidden:,} more without a counterpart.", "quiet")] if hidden > 0 else []
    subtitle = f"A: {comparison.a} · B: {comparison.b}"
    return Page(title, [Section("all", "All", blocks)], subtitle, comparison.headline)


def _table(comparison: Comparison) -> Table:
    columns = [
        Column("Model"),
        Column("Device"),
        Column("Precision"),
        Column("SME2"),
        Column("Threads"),
        Column("A", meaning="time of a run of A", numeric=True),
        Column("B", meaning="time of a run of B", numeric=True),
        Column("B against A", meaning="with the 95 % interval"),
        Column("Size of .pte"),
        Column("Peak memory"),
        Column("Cause", wraps=True),
    ]
    rows = [_row(change) for change in worst_first(comparison.changes)]
    used = [at for at in range(len(columns)) if any(row[at].text not in ("", DASH) for row in rows)]
    return Table([columns[at] for at in used], [[row[at] for at in used] for row in rows])


def _row(change: SeriesChange) -> list[Cell]:
    names = (change.model, change.device, change.precision, change.variant, str(change.threads))
    times = [
        Cell((Link(time_text(side.time_ms), cell_page(side.cell)),), sort=side.time_ms)
        if side.time_ms is not None and side.cell
        else Cell(time_text(side.time_ms) or DASH, sort=side.time_ms)
        for side in (change.a, change.b)
    ]
    answer = Cell(answer_text(change), sort=change.ratio, tone=_TONES.get(change.word, ""))
    beside = [Cell(size_change(change)), Cell(memory_change(change)), Cell(with_code(change.cause or "") or "")]
    return [*(Cell(name) for name in names), *times, answer, *beside]
