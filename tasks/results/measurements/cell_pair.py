"""Two cells side by side: what differs between them, their times, and where time and memory go in each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.bundle.variant_word import variant_word
from tasks.results.cells import ChangePercent
from tasks.results.changes import Comparison, SeriesChange
from tasks.results.compare import compare_pair
from tasks.results.measurements.operators import CATEGORIES, OTHER
from tasks.results.measurements.sme2 import CellCoverageRow
from tasks.results.measurements.time_tree import CellTimePartRow, TimePartRow, read_time_parts
from tasks.results.provenance import CellFactsRow
from tasks.results.reader import Reader
from tasks.results.table import MB, Milliseconds, Number, Row, Signed, Words

_NAMES = {"night": "night", "device": "device", "model": "model", "precision": "precision", "threads": "threads"}


@dataclass(frozen=True)
class CellChangeRow(Row):
    """One fact that differs between two cells."""

    query = "cell_changes"
    fact: Annotated[str, Words("What")]
    before: Annotated[str | None, Words("A")]
    after: Annotated[str | None, Words("B")]


@dataclass(frozen=True)
class CellOwnerRow(Row):
    """The bytes of one owner of memory in two cells, at the peak."""

    query = "cell_owners"
    owner: Annotated[str, Words("Owner")]
    bytes_a: Annotated[int | None, Number("A", "MB", digits=1, scale=1 / MB)]
    bytes_b: Annotated[int | None, Number("B", "MB", digits=1, scale=1 / MB)]
    ratio: Annotated[float | None, ChangePercent("Change", "B over A: above 0 is more")]


@dataclass(frozen=True)
class CellCategoryRow(Row):
    """The time of one category of operators in two cells; those of a cell add up to its time."""

    category: Annotated[str, Words("Category")]
    a_ms: Annotated[float, Milliseconds("A")]
    b_ms: Annotated[float, Milliseconds("B")]
    change_ms: Annotated[float, Signed("Change", "ms", "B minus A", digits=3)]


@dataclass(frozen=True)
class CellPair:
    """Cell B compared with cell A."""

    a: CellFactsRow
    b: CellFactsRow
    comparison: Comparison
    differences: Sequence[CellChangeRow]
    """Names first, then contents, sources and states of the device."""
    parts: tuple[Sequence[CellTimePartRow], Sequence[CellTimePartRow]]
    """The parts of the time of A and of B; empty without times."""
    owners: Sequence[CellOwnerRow]
    coverage: Mapping[str, CellCoverageRow]
    """What ran on SME, by cell; none of a cell without SME2 or SME1."""
    export_keys: tuple[str, str] | None
    """Of A and of B, where the farm exported two different .pte files."""

    @property
    def categories(self) -> list[CellCategoryRow]:
        """The categories that one of the cells has, the rest last; empty without times."""
        a, b = (_sum_by_category(parts) for parts in self.parts)
        return [CellCategoryRow(name, a[name], b[name], b[name] - a[name]) for name in CATEGORIES if a[name] or b[name]]

    @property
    def change(self) -> SeriesChange:
        return self.comparison.changes[0]


def _sum_by_category(parts: Iterable[TimePartRow]) -> dict[str, float]:
    """Return milliseconds by category, also of those that the cell does not have."""
    sums = dict.fromkeys(CATEGORIES, 0.0)
    for part in parts:
        sums[part.category if part.category in sums else OTHER] += part.time_ms
    return sums


def compare_two_cells(reader: Reader, a: CellFactsRow, b: CellFactsRow) -> CellPair:
    """Compare two cells; raises InputError if they are one, or if one has no succeeded session in timing."""
    comparison = compare_pair(reader, a.cell, b.cell)
    both = {"cell_a": a.cell, "cell_b": b.cell}
    parts = read_time_parts(reader, [a.cell, b.cell])
    names = list(_differing_names(a, b))
    named = {row.fact for row in names}  # a device is named, and not by its serial
    return CellPair(
        a=a,
        b=b,
        comparison=comparison,
        differences=[*names, *(row for row in reader.rows(CellChangeRow, both) if row.fact not in named)],
        parts=(parts.get(a.cell, []), parts.get(b.cell, [])),
        owners=reader.rows(CellOwnerRow, both),
        coverage={row.cell: row for row in reader.rows(CellCoverageRow, {"cells": [a.cell, b.cell]})},
        export_keys=next(iter(reader.tuples("cell_files", **both)), None),
    )


def _differing_names(a: CellFactsRow, b: CellFactsRow) -> Iterator[CellChangeRow]:
    """Yield the names of the series and the night that differ."""
    for name, title in _NAMES.items():
        before, after = (getattr(row, name) for row in (a, b))
        if before != after:
            yield CellChangeRow(title, str(before), str(after))
    if a.variant != b.variant:
        yield CellChangeRow("variant", variant_word(a.variant), variant_word(b.variant))
