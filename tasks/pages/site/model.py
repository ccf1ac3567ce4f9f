"""The pages of a model and of all models. A model: its series, and where the time goes in a few cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from tasks.bundle.cell import ROOF
from tasks.bundle.model_names import case_title
from tasks.bundle.runtime import base_model
from tasks.pages.page import MAX_LISTED, Block, Fold, Page, Paragraph, Section
from tasks.pages.report import short_sections
from tasks.pages.sections import incidents
from tasks.pages.sections.model_details import Details, details_sections, pictures_and_rest
from tasks.pages.sections.panels import series_panels
from tasks.pages.sections.sessions import failures
from tasks.pages.sections.worst_series import COLUMNS, worst_first
from tasks.results.addresses import cell_page, sweep_page
from tasks.results.cells import model_link
from tasks.results.glances.incident_cards import IncidentCard
from tasks.results.reader import Answers, Reader
from tasks.results.series import SeriesRow, UnjudgedModelRow, not_measured, worst_series_first
from tasks.results.table import Cell, Column, Table, first_rows, grouped
from tasks.results.text import (
    CodeLink,
    Link,
    Text,
    counted,
    joined,
    listed,
    separated,
    series_conditions,
    without_links,
)

_MAX_DETAILED, _MAX_LINKED, _MAX_SERIES = 2, 6, 60
_VERDICT_NEEDS = "A verdict needs succeeded sessions on a real device."


def list_page(reader: Reader, rows: Sequence[SeriesRow], unjudged: Sequence[UnjudgedModelRow]) -> Page:
    """Return the page of all models, the worst first, then those without a verdict."""
    every, rows = rows, [row for row in rows if base_model(row.model) != ROOF]
    models = grouped(rows, lambda row: row.model)
    lines = [[Cell((model_link(model),)), *cells] for model, cells in worst_first(reader, models, "model").items()]
    blocks: list[Block] = [Table([Column("Model"), *COLUMNS], lines)] if lines else []
    if unjudged:
        blocks += [Paragraph("Models without a verdict:"), first_rows(unjudged, MAX_LISTED, "etfarm sql lists all")]
    newest = max((row.night for row in rows), default=None)
    measured = sum(row.night == newest for row in rows)
    rest = not_measured(len(rows) - measured, newest) if newest else ""
    roofs = sum(row.night == newest for row in every) - measured
    of_roof = f" and {roofs:,} of the roof" if roofs else ""
    answer = f"{counted(len(models), 'model').capitalize()}, {measured:,} series{of_roof}{rest}. The worst is first."
    answer = answer if rows else f"No model has a verdict yet. {_VERDICT_NEEDS}"
    return Page("Models", [Section("all", "All", blocks)] if blocks else [], answer=answer)


@dataclass(frozen=True)
class Nights:
    """The times of series by id and device, in nights, the oldest first."""

    nights: Sequence[date]
    times_ms: Mapping[tuple[str, str], Sequence[float | None]]


def page(
    name: str, rows: Sequence[SeriesRow], cards: Sequence[IncidentCard], explained: Section, nights: Nights,
    details: Details | None,
) -> Page:  # fmt: skip
    """Return the page of a model from the rows of its series, with the breakdown of a few of their cells.

    `name` is the model's in the warehouse, `cards` those of its open incidents, and `explained` its worst series.
    """
    model = rows[0].model
    table = first_rows(worst_series_first(rows), _MAX_SERIES, "see the devices", without=("model",))
    series: list[Block] = [
        series_panels(rows, nights.times_ms, nights.nights),
        Fold(f"Table of {counted(len(rows), 'series', 'series')}", [table]),
    ]
    head, facts = explained.blocks[0], explained.blocks[1:]
    answer = without_links(head.text) if isinstance(head, Paragraph) else ""
    sections = [
        *incidents.section(cards),
        Section("series", "All series", series),
        *(details_sections(details, _other_cells(rows)) if details else []),
        Section(explained.anchor, "The worst series in words", [Fold(answer, facts)]),
    ]
    title = case_title(model)
    subtitle = f"{f'{name} · ' if name != title else ''}{len(rows):,} series"
    return Page(f"Model {title}", sections, subtitle, *incidents.answer(cards, rows))


def page_without_verdict(name: str, row: UnjudgedModelRow, answers: Answers) -> Page:
    """Return the page of a model without a verdict, `name` in the warehouse; `answers` are those about its sweep."""
    sweep = ("newest sweep: ", CodeLink(row.sweep_id, sweep_page(row.sweep_id)))
    title = case_title(row.model)
    subtitle = (f"{name} · ", *sweep) if name != title else sweep
    of_model = answers.limit_to({"model": {row.model}})
    sections = [*short_sections(of_model, [failures]), *pictures_and_rest(of_model, [])]
    answer = f"This model has no verdict, on {listed(row.devices)}. {_VERDICT_NEEDS}"
    return Page(f"Model {title}", sections, subtitle, answer)


def choose_cells(rows: Sequence[SeriesRow]) -> list[str]:
    """Return two cells of the newest night: the worst one, and the worst of another precision or else variant."""
    return [row.cell for row in _worst_of_kinds(rows)[:_MAX_DETAILED]]


def choose_pair(rows: Sequence[SeriesRow]) -> list[str]:
    """Return the cells of the worst series of the newest night that was measured with SME2 on and off, and of both."""
    newest = max(row.night for row in rows)
    variants: dict[tuple[str, str, int | None], dict[str, str]] = {}
    for row in worst_series_first(rows):
        if row.night == newest and row.time_ms is not None:
            variants.setdefault((row.device, row.precision, row.threads), {}).setdefault(row.variant, row.cell)
    return next((list(each.values()) for each in variants.values() if {"sme2_on", "sme2_off"} <= each.keys()), [])


def _worst_of_kinds(rows: Sequence[SeriesRow]) -> list[SeriesRow]:
    """Return the worst series of each precision in the newest night, then of each precision and variant."""
    newest = max(row.night for row in rows)
    measured = [row for row in worst_series_first(rows) if row.night == newest and row.time_ms is not None]
    precisions = {row.precision: row for row in reversed(measured)}
    kinds = {(row.precision, row.variant): row for row in reversed(measured)}
    first = sorted(precisions.values(), key=measured.index)
    return [*first, *(row for row in sorted(kinds.values(), key=measured.index) if row not in first)]


def _other_cells(rows: Sequence[SeriesRow]) -> Text:
    """Return links to the worst cells of further precisions and variants; empty without any."""
    others = _worst_of_kinds(rows)[_MAX_DETAILED:]
    names = [", ".join([f"{row.precision} on {row.device}", *series_conditions(row)]) for row in others]
    links: list[Text] = [(Link(name, cell_page(row.cell)),) for row, name in zip(others, names, strict=True)]
    return joined("The same for ", separated(links, "; ", most=_MAX_LINKED), ".") if links else ""
