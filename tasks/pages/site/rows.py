"""What the pages of the site are made from: one row class for each query `sql/queries/site_*.sql`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from tasks.pages.report.sections.verdicts import TONES, VerdictRow, change_of
from tasks.results.addresses import model_page, series_page
from tasks.results.cells import CellRow, Night
from tasks.results.table import Cell, Milliseconds, Name, Number, Percent, Words, cells_of
from tasks.results.text import CodeLink, Link, Tone


@dataclass(frozen=True, kw_only=True)
class Change(Percent):
    """A ratio as a change in percent, with its sign."""

    def _write(self, value: Any) -> Cell:
        return Cell(change_of(value), sort=value)


def tone_of(verdict: str) -> Tone:
    """Return how a verdict is shown."""
    return "good" if verdict in ("improvement", "device faster") else TONES.get(verdict, "")


VERDICT = Words("Verdict", tone=tone_of)


@dataclass(frozen=True)
class NightVerdictRow(VerdictRow):
    """A verdict on a night, whatever sweep measured it."""

    query = "site_verdicts"


VerdictsOf = Callable[[date], Sequence[NightVerdictRow]]
"""Gives the verdicts on a night, worst first."""


@dataclass(frozen=True)
class SeriesRow(CellRow):
    """A series on a device with its newest verdict."""

    query = "series"
    series_id: str
    night: Annotated[date, Night("Newest night")]
    time_ms: Annotated[float | None, Milliseconds("Time")]
    verdict: Annotated[str, VERDICT]
    ratio: Annotated[float | None, Change("Change", "the night against its baseline: above 0 is slower")]
    noise_floor: Annotated[float | None, Percent("Noise floor")]
    since: Annotated[date | None, Words("Since")]
    nights: Annotated[int, Number("Nights")]
    place: int
    """Of the verdict, the worst first."""
    weeks: list[date]
    """The Monday of each week in which it has a night."""

    @property
    def page(self) -> str:
        """Where its history is."""
        return series_page(self.series_id, self.device)

    @cells_of("time_ms")
    def _time_cell(self, cell: Cell) -> Cell:
        return Cell((Link(str(cell.text), self.page),), sort=cell.sort)


@dataclass(frozen=True, kw_only=True)
class Model(Name):
    """A model, which leads to its page."""

    def _write(self, value: Any) -> Cell:
        return Cell((CodeLink(str(value), model_page(str(value))),))
