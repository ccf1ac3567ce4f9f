"""What the pages that compare are made from."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from tasks.results.addresses import cell_page, series_page
from tasks.results.cells import CellRow, Device
from tasks.results.series import Change
from tasks.results.table import Cell, Milliseconds, Percent, Row, Words, cells_of
from tasks.results.text import Link
from tasks.results.verdicts import change_of, tone_of


@dataclass(frozen=True)
class ComparedRow(CellRow):
    """The times of one series in two nights."""

    query = "site_comparison"
    series_id: str
    before_ms: Annotated[float | None, Milliseconds("Before")]
    after_ms: Annotated[float | None, Milliseconds("After")]
    ratio: Annotated[float | None, Change("Change", "after over before: above 0 is slower")]
    before_verdict: Annotated[str | None, Words("Verdict before", tone=tone_of)]
    after_verdict: Annotated[str | None, Words("Verdict after", tone=tone_of)]

    @cells_of("after_ms")
    def _after_cell(self, cell: Cell) -> Cell:
        return Cell((Link(str(cell.text), series_page(self.series_id, self.device)),), sort=cell.sort)


@dataclass(frozen=True)
class MeasuredRow(Row):
    """Two contents that were measured in turns on one device."""

    query = "site_measured"
    night: Annotated[date | None, Words("Night")]
    device: Annotated[str, Device("Device")]
    without_times = None
    purpose: Annotated[str, Words("Why")]
    side_a: Annotated[str, Words("A", wraps=True)]
    side_b: Annotated[str, Words("B", wraps=True)]
    cell_a: str
    cell_b: str
    time_a_ms: Annotated[float | None, Milliseconds("A")]
    time_b_ms: Annotated[float | None, Milliseconds("B")]
    ratio: Annotated[float | None, Change("Change", "B against A: above 0 is slower")]
    low: Annotated[float | None, Percent("95 % interval")]
    high: float | None
    answer: Annotated[str, Words("Answer")]
    changed: Annotated[str | None, Words("What differs", wraps=True)]

    @cells_of("time_a_ms")
    def _a_cell(self, cell: Cell) -> Cell:
        return Cell((Link(str(cell.text), cell_page(self.cell_a)),), sort=cell.sort)

    @cells_of("time_b_ms")
    def _b_cell(self, cell: Cell) -> Cell:
        return Cell((Link(str(cell.text), cell_page(self.cell_b)),), sort=cell.sort)

    @cells_of("low")
    def _interval_cell(self, cell: Cell) -> Cell:
        if self.low is None or self.high is None:
            return cell
        return Cell(f"{change_of(self.low)} to {change_of(self.high)}", sort=self.low)
