"""The pages that compare two nights, or two devices, models, precisions or variants, as `etfarm compare` does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import combinations, islice

from devices.errors import InputError
from tasks.bundle.variant_word import variant_word
from tasks.pages.page import MAX_LISTED, Block, Choice, Page, Points, Section
from tasks.results.addresses import arms_page, cell_page, night_page, slug
from tasks.results.changes import (
    Comparison,
    SeriesChange,
    answer_text,
    memory_change,
    size_change,
    time_text,
    worst_first,
)
from tasks.results.compare import compare_arms
from tasks.results.reader import Reader
from tasks.results.series import InterleavedRow, NightRow, SeriesRow, TwoNightsRow
from tasks.results.table import Cell, Column, Table, build_table, first_rows, more_rows
from tasks.results.text import (
    DASH,
    Code,
    Link,
    Text,
    Tone,
    counted,
    joined,
    series_title,
    with_code,
)

_KINDS = {"variant": "Variants", "precision": "Precisions", "device": "Devices"}
_MAX_PAIRS = 15
_MAX_REMARKS = 15
_TONES: dict[str, Tone] = {"slower": "bad", "inaccurate": "bad", "faster": "good", "device slower": "flag"}


def list_values(kind: str, series: Sequence[SeriesRow]) -> list[str]:
    """Return the sorted devices, models, precisions or variants of the farm, by `kind`; empty for another kind."""
    return sorted({getattr(row, kind) for row in series}) if kind in (*_KINDS, "model") else []


def list_pairs(series: Sequence[SeriesRow]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, A and B of the pairs that the list of comparisons links to: the first 15 of each kind."""
    for kind in _KINDS:
        yield from ((kind, a, b) for a, b in islice(combinations(list_values(kind, series), 2), _MAX_PAIRS))


def list_page(reader: Reader, series: Sequence[SeriesRow], nights: Sequence[NightRow]) -> Page:
    """Return the page with links to comparisons of nights, variants, precisions and devices, and interleaved ones."""
    sections = []
    if len(nights) > 1:
        options = [(str(row.night), str(row.night), str(row.night)) for row in nights]
        choice = Choice("Nights", options, "comparisons/{a}..{b}.html", "etfarm compare {a} {b}")
        sections.append(Section("night", "Nights", [choice]))
    pairs = list(list_pairs(series))
    for kind, title in _KINDS.items():
        links = [
            (Link(f"{_label(kind, a)} and {_label(kind, b)}", arms_page(kind, a, b)),)
            for pair_kind, a, b in pairs
            if pair_kind == kind
        ]
        if links:
            options = [(_label(kind, value), value, slug(value)) for value in list_values(kind, series)]
            command = f"etfarm compare {kind}:{{a}} {kind}:{{b}}"
            choice = Choice(title, options, f"comparisons/{kind}/{{a}}..{{b}}.html", command)
            sections.append(Section(kind, title, [choice, Points(links)]))
    if interleaved := reader.rows(InterleavedRow):
        table = first_rows(interleaved, MAX_LISTED, "etfarm sql lists all: comparison")
        sections.append(Section("interleaved", "Interleaved", [table]))
    answer = (
        f"{counted(len(pairs), 'pair').capitalize()} of the newest sweep that has both sides, "
        f"{counted(len(interleaved), 'interleaved comparison')}. Any other: ",
        Code("etfarm compare A B"),
        ".",
    )
    return Page("Compare", sections, answer=answer)


def _label(kind: str, value: str) -> str:
    return variant_word(value) if kind == "variant" else value


def nights_page(reader: Reader, before: date, after: date) -> Page:
    """Return the page of two nights side by side."""
    rows = reader.rows(TwoNightsRow, {"before": before, "after": after, "max_rows": MAX_LISTED})
    every, both = (rows[0].every_series, rows[0].series_in_both) if rows else (0, 0)
    only = f", {every - both:,} in one of them" if both < every else ""
    answer = joined(
        (Link(str(after), night_page(after)), " against ", Link(str(before), night_page(before))),
        f": {counted(both, 'series', 'series')} in both nights{only}."
        " Two nights alone prove little; a verdict compares with all nights before.",
    )
    where = with_code(f"`etfarm compare {before} {after}` lists all, with intervals")
    table = replace(build_table(rows), hidden=more_rows(every - len(rows), where))
    sections = [Section("all", "All", [table])]
    return Page(f"{before} and {after}", sections, answer=answer)


def values_page(reader: Reader, kind: str, a: str, b: str) -> Page:
    """Return the page of two values of `kind`, such as devices; if they have no series in common, it states that."""
    title = f"{_label(kind, a)} and {_label(kind, b)}"
    try:
        comparison = compare_arms(reader, f"{kind}:{a}", f"{kind}:{b}")
    except InputError as error:
        return Page(title, answer=f"{error}.", tone="flag")
    where = with_code(f"`etfarm compare {kind}:{a} {kind}:{b}` lists all")
    blocks: list[Block] = [_changes_table(comparison).shortened(MAX_LISTED, where)]
    remarks: list[Text] = list(comparison.remarks)
    remarks += [f"{each.word}: {series_title(each)}" for each in comparison.uncompared]
    hidden = len(remarks) - _MAX_REMARKS
    more = [joined(f"{hidden:,} more: ", where)] if hidden > 0 else []
    if remarks:
        blocks.append(Points([*remarks[:_MAX_REMARKS], *more]))
    subtitle = f"A: {comparison.a} · B: {comparison.b}"
    return Page(title, [Section("all", "All", blocks)], subtitle, comparison.headline)


def _changes_table(comparison: Comparison) -> Table:
    """Return the changes, the worst first, without columns that are empty."""
    columns = [
        Column("Model"),
        Column("Device"),
        Column("Precision"),
        Column("Variant"),
        Column("Threads"),
        Column("A", meaning="time of a run of A", numeric=True),
        Column("B", meaning="time of a run of B", numeric=True),
        Column("B against A", meaning="with the 95 % interval"),
        Column("Size of .pte"),
        Column("Peak memory"),
        Column("Cause", wraps=True),
    ]
    rows = [_change_cells(change) for change in worst_first(comparison.changes)]
    used = [at for at in range(len(columns)) if any(row[at].text not in ("", DASH) for row in rows)]
    return Table([columns[at] for at in used], [[row[at] for at in used] for row in rows])


def _change_cells(change: SeriesChange) -> list[Cell]:
    names = (change.model, change.device, change.precision, variant_word(change.variant), str(change.threads))
    times = [
        Cell((Link(time_text(side.time_ms), cell_page(side.cell)),), sort=side.time_ms)
        if side.time_ms is not None and side.cell
        else Cell(time_text(side.time_ms) or DASH, sort=side.time_ms)
        for side in (change.a, change.b)
    ]
    answer = Cell(answer_text(change), sort=change.ratio, tone=_TONES.get(change.word, ""))
    others = [Cell(size_change(change)), Cell(memory_change(change)), Cell(with_code(change.cause or "") or "")]
    return [*(Cell(name) for name in names), *times, answer, *others]
