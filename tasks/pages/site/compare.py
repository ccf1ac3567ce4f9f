"""The pages that compare two nights, or two devices, models, precisions, ..., as `etfarm compare` does."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import combinations, islice

from devices.errors import InputError
from tasks.bundle.model_names import case_title
from tasks.bundle.variant_word import variant_word
from tasks.judge.arms import KINDS, SAME_ARM
from tasks.judge.figures import LATENCY, MARGIN
from tasks.pages.charts import Mark
from tasks.pages.page import MAX_LISTED, Block, Choice, ChoiceOfPair, Command, Fold, Page, Points, Section, ViewLink
from tasks.pages.site.intervals import Ratio, interval_chart
from tasks.results.addresses import arms_page, cell_page, cell_pair_page, night_page, series_page, slug
from tasks.results.changes import (
    Comparison,
    SeriesChange,
    answer_text,
    counted_ratio,
    geometric_mean,
    load_change,
    mean_of_changes,
    memory_change,
    size_change,
    time_text,
    worst_first,
)
from tasks.results.compare import compare_arms, list_arms
from tasks.results.reader import Reader
from tasks.results.series import InterleavedRow, NightRow, TwoNightsRow, counted_night_ratio
from tasks.results.table import Cell, Column, Table, build_table, first_rows, more_rows
from tasks.results.text import (
    DASH,
    Code,
    Link,
    Text,
    counted,
    joined,
    numbered,
    series_title,
    with_code,
    word_tone,
)

_TITLES = {
    "night": "Nights",
    "device": "Devices",
    "model": "Models",
    "precision": "Precisions",
    "variant": "Variants",
    "threads": "Numbers of threads",
    "delegate": "Delegates",
    "executorch": "Versions of ExecuTorch",
    "runtime": "Versions and run-time options of a sweep",
    "sweep": "Sweeps",
    "runner": "Runners",
}
"""Kinds of arms that the form offers."""
_PUBLISHED = {"variant": 15, "precision": 15, "device": 15, "runtime": 15, "threads": 3, "delegate": 3, "executorch": 3}
"""How many pairs of a kind have a published page: each takes seconds."""
_FILTERS = {"Model": "model", "Device": "device", "Precision": "precision", "Variant": "variant"}
"""Columns by which a comparison can be limited, and the option of the command."""
_MAX_LISTED = 100
"""Series on the page of a comparison."""
_MAX_REMARKS = 15
_MAX_OPEN = 15
"""Pairs up to which their lists are open."""
_HASH_DIGITS = 16
_MARKS: dict[str, Mark] = {"slower": "slower", "faster": "faster"}


def list_pairs(reader: Reader) -> Iterator[tuple[str, str, str]]:
    """Yield kind, A and B of the pairs that have a published page, and to which the list of comparisons links."""
    values = reader.once(list_arms)
    for kind, most in _PUBLISHED.items():
        yield from ((kind, a, b) for a, b in islice(combinations(values[kind], 2), most))


def list_page(reader: Reader, nights: Sequence[NightRow]) -> Page:
    """Return the page with the form that compares anything, links to comparisons, and interleaved ones."""
    choice = _choice(reader.once(list_arms), nights)
    blocks: list[Block] = [choice] if choice.kinds else []
    pairs = list(list_pairs(reader))
    for kind in _PUBLISHED:
        links = [
            (Link(f"{_label(kind, a)} and {_label(kind, b)}", arms_page(kind, a, b)),)
            for pair_kind, a, b in pairs
            if pair_kind == kind
        ]
        if links:
            fold = Fold(f"{_TITLES[kind]}: {counted(len(links), 'pair')}", [Points(links)])
            blocks.append(replace(fold, is_open=len(pairs) <= _MAX_OPEN))
    sections = [Section("choose", "Two of a kind", blocks)] if blocks else []
    if interleaved := reader.rows(InterleavedRow):
        table = first_rows(interleaved, MAX_LISTED, "etfarm sql lists all: comparison")
        sections.append(Section("interleaved", "Interleaved", [table]))
    answer = (
        "Compares two of a kind in the newest sweep that has both, series by series, as ",
        Code("etfarm compare A B"),
        " does.",
    )
    nothing = "Nothing can be compared yet: no sweep, device, model or setting has a second one."
    return Page("Compare", sections, answer=answer if sections else nothing)


def _choice(values: Mapping[str, Sequence[str]], nights: Sequence[NightRow]) -> Choice:
    """Return the form; it offers the kinds with two values or more."""
    judged = [str(row.night) for row in nights]
    offered = {kind: judged if kind == "night" else values[kind] for kind in _TITLES}
    kinds = [
        ChoiceOfPair(
            title=_TITLES[kind],
            name=KINDS[kind],
            options=[
                (_label(kind, value), value if kind == "night" else f"{kind}:{value}", slug(value)) for value in names
            ],
            address="comparisons/{a}..{b}.html" if kind == "night" else f"comparisons/{kind}/{{a}}..{{b}}.html",
            field=next((title for title, option in _FILTERS.items() if option == kind), ""),
        )
        for kind, names in offered.items()
        if len(names) > 1
    ]
    filters = {
        title: (option, [(_label(option, value), value) for value in values[option]])
        for title, option in _FILTERS.items()
        if len(values[option]) > 1
    }
    return Choice(kinds, filters, SAME_ARM)


def _label(kind: str, value: str) -> str:
    """Return a value of a kind for readers."""
    if kind == "model":
        return case_title(value)
    return variant_word(value) if kind == "variant" else value[:_HASH_DIGITS] if kind == "runner" else value


def nights_page(reader: Reader, before: date, after: date) -> Page:
    """Return the page of two nights side by side."""
    rows = reader.rows(TwoNightsRow, {"before": before, "after": after})
    mean = geometric_mean(map(counted_night_ratio, rows))
    both = sum(row.ratio is not None for row in rows)
    rest = f", {len(rows) - both:,} without" if both < len(rows) else ""
    answer = joined(
        (Link(str(after), night_page(after)), " against ", Link(str(before), night_page(before))),
        f": {numbered(both, 'series', 'series')} with a time in both nights{rest}. {mean or ''}"
        " Two nights alone prove little; a verdict compares with all nights before.",
    )
    command = f"etfarm compare {before} {after}"
    table = build_table(rows[:_MAX_LISTED])
    ratios = [
        Ratio(
            row,
            series_page(row.series_id, row.device),
            row.ratio,
            None,
            row.change_text,
            _mark_of_nights(row),
        )
        for row in rows[:_MAX_LISTED]
    ]
    picture = interval_chart(f"{after} over {before}", ratios, "Change", LATENCY.min_change, mean)
    hidden = more_rows(len(rows) - _MAX_LISTED, with_code(f"`{command}` lists all"))
    blocks: list[Block] = [
        *([picture] if picture else []),
        replace(table, hidden=hidden, filters=list(_FILTERS)),
        Command(command, "With intervals"),
        ViewLink(),
    ]
    subtitle = f"A: night {before} · B: night {after}"
    return Page(f"{before} and {after}", [Section("all", "Series", blocks)], subtitle, answer)


def _mark_of_nights(row: TwoNightsRow) -> Mark:
    """Return the direction of a change outside of the band, unless both nights were judged without one."""
    ratio, limit = row.ratio or 1.0, 1 + LATENCY.min_change
    if 1 / limit <= ratio <= limit or row.before_verdict == row.after_verdict == "no change":
        return "neither"
    return "slower" if ratio > 1 else "faster"


def values_page(reader: Reader, kind: str, a: str, b: str) -> Page:
    """Return the page of two values of `kind`, such as devices; if they cannot be compared, it states why."""
    title = f"{_label(kind, a)} and {_label(kind, b)}"
    try:
        comparison = compare_arms(reader, f"{kind}:{a}", f"{kind}:{b}")
    except InputError as error:
        return Page(title, answer=f"{error}.", tone="flag")
    command = shlex.join(["etfarm", "compare", f"{kind}:{a}", f"{kind}:{b}"])
    where = (Code(command), " lists all")
    changes = worst_first(comparison.changes)[:_MAX_LISTED]
    ratios = [_ratio(change) for change in changes]
    picture = interval_chart("B / A", ratios, "B against A", MARGIN, mean_of_changes(comparison.changes))
    hidden = more_rows(len(comparison.changes) - len(changes), where)
    blocks: list[Block] = [
        *([picture] if picture else []),
        replace(_changes_table(changes), hidden=hidden),
        *_remarks(comparison, where),
        Command(command, "The same on a terminal"),
        ViewLink(),
    ]
    subtitle = f"A: {comparison.a} · B: {comparison.b}"
    mean = mean_of_changes(comparison.changes)
    answer = f"{mean} {comparison.headline}" if mean else comparison.headline
    return Page(title, [Section("all", "Series", blocks)], subtitle, answer)


def _ratio(change: SeriesChange) -> Ratio:
    bounds = (change.low, change.high) if change.low and change.high else None
    mark = _MARKS.get(change.word.rpartition(" ")[2], "neither")
    return Ratio(change, _pair(change), counted_ratio(change), bounds, answer_text(change), mark)


def _pair(change: SeriesChange) -> str:
    """Return the address of both cells side by side; empty without two."""
    return cell_pair_page(change.a.cell, change.b.cell) if change.a.cell and change.b.cell else ""


def _remarks(comparison: Comparison, where: Text) -> Iterator[Block]:
    """Yield the remarks; in a fold, the cells that were not compared, with the reason."""
    if comparison.remarks:
        yield Points([*map(with_code, comparison.remarks)])
    if others := [f"{each.word}: {series_title(each)}" for each in comparison.uncompared]:
        hidden = len(others) - _MAX_REMARKS
        more = [joined(f"{hidden:,} more: ", where)] if hidden > 0 else []
        yield Fold(f"Not compared: {numbered(len(others), 'cell')}", [Points([*others[:_MAX_REMARKS], *more])])


def _changes_table(changes: Sequence[SeriesChange]) -> Table:
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
        Column("Load"),
        Column("Cause", wraps=True),
    ]
    return Table(columns, [_change_cells(change) for change in changes], filters=list(_FILTERS))


def _change_cells(change: SeriesChange) -> list[Cell]:
    names = (change.model, change.device, change.precision, variant_word(change.variant), str(change.threads))
    times = [
        Cell((Link(time_text(side.time_ms), cell_page(side.cell)),), sort=side.time_ms)
        if side.time_ms is not None and side.cell
        else Cell(time_text(side.time_ms) or DASH, sort=side.time_ms)
        for side in (change.a, change.b)
    ]
    # Sorted by the ratios that count, from which a script computes the mean of the rows that a filter leaves.
    ratio = counted_ratio(change)
    words: Text = answer_text(change)
    if ratio is None and (pair := _pair(change)):  # no line of the picture leads to it
        words = (Link(answer_text(change), pair),)
    answer = Cell(words, sort=ratio, tone=word_tone(change.word))
    figures = [Cell(text(change)) for text in (size_change, memory_change, load_change)]
    cause = Cell(with_code(change.cause or "") or "")
    return [*(Cell(name) for name in names), *times, answer, *figures, cause]
