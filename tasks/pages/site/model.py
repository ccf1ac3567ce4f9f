"""The pages of a model and of all models. A model: its series, and where the time goes in a few cells."""

from collections import Counter
from collections.abc import Sequence

from tasks.bundle.cell import ROOF
from tasks.bundle.runtime import base_model
from tasks.pages.accuracy import accuracy
from tasks.pages.memory import memory
from tasks.pages.operators import advice, modules, operators, portable, what_if
from tasks.pages.page import MAX_LISTED, Block, Page, Paragraph, Section
from tasks.pages.report import MAX_ROWS, short_sections
from tasks.pages.roofline import roofline
from tasks.pages.sessions import failures
from tasks.pages.sme2 import sme2
from tasks.results.addresses import cell_page, model_page, sweep_page
from tasks.results.provenance import CellFactsRow, limit_to_cells
from tasks.results.reader import Answers
from tasks.results.series import SeriesRow, UnjudgedModelRow, bad_if_any, counts_in_words
from tasks.results.table import Cell, Column, Table, first_rows, grouped
from tasks.results.text import CodeLink, Link, Tone, counted, listed, separated
from tasks.results.verdicts import QUIET, verdict_tone

_MAX_DETAILED = 6
_VERDICT_NEEDS = "A verdict needs succeeded sessions on a real device."
_SECTIONS = (advice, what_if, modules, operators, roofline, portable, memory, sme2, accuracy)


def list_page(rows: Sequence[SeriesRow], unjudged: Sequence[UnjudgedModelRow]) -> Page:
    """Return the page of all models: the number of series by newest verdict, and models without one."""
    rows = [row for row in rows if base_model(row.model) != ROOF]
    models = grouped(rows, lambda row: row.model)
    verdicts = list(dict.fromkeys(row.verdict for row in rows))
    lines = []
    for model, series in models.items():
        line = [
            Cell((CodeLink(model, model_page(model)),)),
            Cell(f"{len(series):,}", sort=len(series)),
            Cell(str(len({row.device for row in series}))),
            Cell(", ".join(sorted({row.precision for row in series}))),
        ]
        counts = Counter(row.verdict for row in series)
        for verdict in verdicts:
            tone: Tone = "bad" if verdict_tone(verdict) == "bad" else ""
            line.append(Cell(f"{counts[verdict]:,}", counts[verdict], tone if counts[verdict] else "quiet"))
        lines.append(line)
    columns = [
        Column("Model"),
        Column("Series", numeric=True),
        Column("Devices", numeric=True),
        Column("Precisions"),
        *(Column(verdict.capitalize(), numeric=True) for verdict in verdicts),
    ]
    blocks: list[Block] = [Table(columns, lines)] if lines else []
    if unjudged:
        blocks += [Paragraph("Models without a verdict:"), first_rows(unjudged, MAX_LISTED, "etfarm sql lists all")]
    answer = f"{counted(len(models), 'model').capitalize()}, {len(rows):,} series."
    answer = answer if rows else f"No model has a verdict yet. {_VERDICT_NEEDS}"
    return Page("Models", [Section("all", "All", blocks)] if blocks else [], answer=answer)


def page(
    name: str,
    rows: Sequence[SeriesRow],
    first: Sequence[Section],
    cells: Sequence[CellFactsRow],
    answers: Answers | None,
) -> Page:
    """Return the page of a model from the rows of its series, with the breakdown of a few of their cells.

    `name` is the model's in the warehouse, `first` are its open incidents and its worst series, explained, and
    `answers` are those about the sweep of the cells; None without cells.
    """
    model = rows[0].model
    which = (
        "In the newest night, of ",
        *separated([(Link(f"{row.precision} on {row.device}", cell_page(row.cell)),) for row in cells]),
        ". For another night, follow its time on the page of the series.",
    )
    sections = [
        *first,
        Section("series", "Series", [first_rows(rows, MAX_ROWS, "see the devices", without=("model",))]),
        *([Section("breakdown", "Where the time goes", [Paragraph(which)])] if cells else []),
        *(short_sections(limit_to_cells(answers, cells), _SECTIONS) if answers else []),
    ]
    subtitle = f"{f'{name} · ' if name != model else ''}{len(rows):,} series"
    return Page(f"Model {model}", sections, subtitle, counts_in_words(rows), bad_if_any(rows))


def page_without_verdict(name: str, row: UnjudgedModelRow, answers: Answers) -> Page:
    """Return the page of a model without a verdict, `name` in the warehouse; `answers` are those about its sweep."""
    sweep = ("newest sweep: ", CodeLink(row.sweep_id, sweep_page(row.sweep_id)))
    subtitle = (f"{name} · ", *sweep) if name != row.model else sweep
    sections = short_sections(answers.limit_to({"model": {row.model}}), (failures, *_SECTIONS))
    answer = f"This model has no verdict, on {listed(row.devices)}. {_VERDICT_NEEDS}"
    return Page(f"Model {row.model}", sections, subtitle, answer)


def choose_cells(rows: Sequence[SeriesRow]) -> list[str]:
    """Return up to six cells of the newest night, one of each precision and variant; cells that changed come first."""
    newest = max(row.night for row in rows)
    candidates = [row for row in rows if row.night == newest and row.time_ms is not None]
    candidates.sort(key=lambda row: row.verdict in QUIET)
    kinds = {(row.precision, row.variant): row for row in reversed(candidates)}
    return [row.cell for row in sorted(kinds.values(), key=candidates.index)[:_MAX_DETAILED]]
