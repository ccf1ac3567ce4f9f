"""The pages of a model, of a device and of a sweep: parts of the report on the newest sweep, for one subject alone."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tasks.pages.report import head
from tasks.pages.report.page import Block, Fold, Page, Paragraph, Section
from tasks.pages.report.sections.section_list import SECTIONS
from tasks.pages.site.history import histories_of
from tasks.results.addresses import cell_page, device_page, model_page, night_page, sweep_page
from tasks.results.cells import tags_of
from tasks.results.devices import DeviceNightRow, FarmDeviceRow
from tasks.results.provenance import CellFactsRow, limited_to
from tasks.results.reader import Answers
from tasks.results.series import DecisionRow, SeriesRow, UnjudgedModelRow
from tasks.results.table import Table, first_rows, table_of
from tasks.results.text import CodeLink, Link, Tone, listed, separated
from tasks.results.verdicts import tone_of

MOST_CELLS = 60
_MOST_DETAILED = 6
_MOST_ROWS = 200
_MOST_NIGHTS = 30
VERDICT_NEEDS = "succeeded sessions on a real device"
_OF_MODEL = ("advice", "modules", "operators", "portable", "sme2", "accuracy")
_OF_LARGE_SWEEP = ("failures",)


def details_of(answers: Answers, cells: Sequence[CellFactsRow], anchors: Iterable[str]) -> list[Section]:
    """Return sections of the report on a sweep, limited to some cells; other sessions are not counted."""
    return sections_of(limited_to(answers, cells), anchors)


def sections_of(answers: Answers, anchors: Iterable[str]) -> list[Section]:
    """Return sections of the report with tables and lists of a size that can be read."""
    wanted = tuple(anchors)
    made = {section.__name__: section for section in SECTIONS}
    return [_shortened(made[anchor](answers)) for anchor in wanted]


def _shortened(section: Section) -> Section:
    return replace(section, blocks=_fewer(section.blocks))


def _fewer(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with at most 200 rows in a table and 60 folds; what is left out is counted."""
    kept: list[Block] = []
    folds = 0
    for block in blocks:
        if isinstance(block, Table):
            kept.append(block.shortened(_MOST_ROWS, "the pages of models and devices have them"))
        elif isinstance(block, Fold):
            folds += 1
            if folds <= MOST_CELLS:
                kept.append(replace(block, blocks=_fewer(block.blocks)))
        else:
            kept.append(block)
    if folds > MOST_CELLS:
        kept.append(
            Paragraph(f"{folds - MOST_CELLS:,} more cells: the pages of models and devices have them.", "quiet")
        )
    return kept


def model_of(
    name: str,
    rows: Sequence[SeriesRow],
    explained: Section,
    cells: Sequence[CellFactsRow],
    answers: Answers | None,
    footer: str,
) -> Page:
    """Return the page of a model from the rows of its series, with the breakdown of a few of their cells.

    `name` is the model's in the warehouse; `explained` is what is known about the worst of them; `answers` are those
    about the sweep of the cells, if there are any.
    """
    model = rows[0].model
    which = (
        "Where the time goes, in the newest night, of ",
        *separated([(Link(f"{row.precision} on {row.device}", cell_page(row.cell)),) for row in cells]),
        "; the time of each night on the page of a series leads to its own.",
    )
    sections = [
        explained,
        Section("series", "Series", [first_rows(rows, _MOST_ROWS, "see the devices", without=("model",))]),
        *([Section("breakdown", "Where the time goes", [Paragraph(which)])] if cells else []),
        *(details_of(answers, cells, _OF_MODEL) if answers else []),
    ]
    subtitle = f"{name} · " if name != model else ""
    return Page(
        f"Model {model}", f"{subtitle}{len(rows):,} series", (), (), sections, footer, model_page(model),
        answer=counts_of(rows), tone=_tone(rows),
    )  # fmt: skip


def unjudged_model_of(name: str, row: UnjudgedModelRow, answers: Answers, footer: str) -> Page:
    """Return the page of a model without a verdict, `name` in the warehouse; `answers` are those about its sweep."""
    sweep = ("newest sweep: ", CodeLink(row.sweep_id, sweep_page(row.sweep_id)))
    return Page(
        f"Model {row.model}", (f"{name} · ", *sweep) if name != row.model else sweep, (), (),
        sections_of(answers.limited({"model": {row.model}}), ("failures", *_OF_MODEL)), footer, model_page(row.model),
        answer=f"This model has no verdict, on {listed(row.devices)}. A verdict needs {VERDICT_NEEDS}.",
    )  # fmt: skip


def detailed(rows: Sequence[SeriesRow]) -> list[str]:
    """Return the cells of a model in the newest night to show in full.

    What changed comes first, then one of each precision and variant.
    """
    newest = max(row.night for row in rows)
    candidates = [row for row in rows if row.night == newest and row.time_ms is not None]
    candidates.sort(key=lambda row: row.verdict in ("no change", "insufficient data"))
    kinds = {(row.precision, row.variant): row for row in reversed(candidates)}
    return [row.cell for row in sorted(kinds.values(), key=candidates.index)[:_MOST_DETAILED]]


def device_of(
    row: FarmDeviceRow,
    nights: Sequence[DeviceNightRow],
    rows: Sequence[SeriesRow],
    decisions: Sequence[DecisionRow],
    footer: str,
) -> Page:
    """Return the page of a device: its facts, its nights, its series and the history of each."""
    sections = [
        Section("facts", "What it is", [table_of([row])]),
        *([Section("history", "History", [histories_of(rows, decisions)])] if rows else []),
        Section(
            "series",
            "Series",
            [first_rows(rows, _MOST_ROWS, "see the models", without=("device",))]
            if rows
            else [Paragraph(_no_times(row))],
        ),
        Section(
            "nights",
            "Nights",
            [first_rows(nights, _MOST_NIGHTS, "etfarm sql lists them in session_overview", without=("device",))],
        ),
    ]
    newest = (" newest night: ", Link(str(row.night), night_page(row.night)))
    return Page(
        f"Device {row.device}", (*tags_of(row.without_times), *newest), (), (), sections,
        footer, device_page(row.device), answer=counts_of(rows) if rows else _no_times(row), tone=_tone(rows),
    )  # fmt: skip


def _no_times(row: FarmDeviceRow) -> str:
    if row.without_times:
        return f"This device is {row.without_times}: its times mean nothing, are not shown and never ranked."
    return "No series of this device was judged yet."


def counts_of(rows: Sequence[SeriesRow]) -> str:
    """Return how many series have which newest verdict."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return f"{len(rows):,} series: {', '.join(f'{verdict} {count:,}' for verdict, count in counts.items())}."


def _tone(rows: Sequence[SeriesRow]) -> Tone:
    return "bad" if any(tone_of(row.verdict) == "bad" for row in rows) else ""


def sweep_of(answers: Answers, footer: str) -> Page:
    """Return the page of a sweep: its report; of more cells than can be read, what is not about single cells."""
    every = [section.__name__ for section in SECTIONS]
    cells = answers.sweep.devices * answers.sweep.models
    anchors = every if cells <= MOST_CELLS else _OF_LARGE_SWEEP
    sections = sections_of(answers, anchors)
    return Page(
        title=f"Sweep {answers.sweep.sweep_id}",
        subtitle=head.subtitle(answers.sweep),
        figures=head.figures(answers),
        summary=[*head.summary(answers), *(sentence for section in sections for sentence in section.summary)],
        sections=sections,
        footer=footer,
        address=sweep_page(answers.sweep.sweep_id),
    )
