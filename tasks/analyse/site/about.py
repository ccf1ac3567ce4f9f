"""The pages of a model, of a device and of a sweep: parts of the report on the newest sweep, for one subject alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tasks.analyse.report import head
from tasks.analyse.report.addresses import device_page, model_page, night_page, sweep_page
from tasks.analyse.report.columns import table_of
from tasks.analyse.report.data import Answers, Reader, SweepRow
from tasks.analyse.report.page import Block, Fold, Link, Page, Paragraph, Section, Table, Tone
from tasks.analyse.report.sections.section_list import SECTIONS
from tasks.analyse.site.rows import DeviceNightRow, FarmDeviceRow, LatestRow, SeriesRow

_MOST_CELLS = 60
_MOST_ROWS = 200
_OF_MODEL = ("latency", "sme2", "threads", "modules", "operators", "portable", "accuracy", "layers", "advice")
_OF_DEVICE = ("latency", "sme2", "categories", "failures", "provenance")

_OF_LARGE_SWEEP = ("verdicts", "latency", "failures", "provenance")


def details_of(
    reader: Reader, anchors: Iterable[str], model: str | None = None, device: str | None = None
) -> list[Section]:
    """Return sections of the report on the newest sweep that measured a model or a device, limited to it."""
    full = reader.models.get(model, model) if model else None
    latest = reader.rows(LatestRow, {"model": full, "device": device})
    scope = {name: value for name, value in (("model", full), ("device", device)) if value}
    return sections_of(scoped(reader, latest[0].sweep_id, scope), anchors) if latest else []


def scoped(reader: Reader, sweep_id: str, scope: Mapping[str, str | int]) -> Answers:
    """Return the answers of a sweep about some of its rows; what it discarded elsewhere is not counted."""
    (sweep,) = reader.rows(SweepRow, scope={"sweep_id": sweep_id})
    return Answers(reader, replace(sweep, discarded=0), scope)


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
            if folds <= _MOST_CELLS:
                kept.append(replace(block, blocks=_fewer(block.blocks)))
        else:
            kept.append(block)
    if folds > _MOST_CELLS:
        kept.append(
            Paragraph(f"{folds - _MOST_CELLS:,} more cells: the pages of models and devices have them.", "quiet")
        )
    return kept


def model_of(reader: Reader, rows: Sequence[SeriesRow], footer: str) -> Page:
    """Return the page of a model from the rows of its series."""
    model = rows[0].model
    sections = [
        Section("series", "Series", [table_of(rows, without=("model",))]),
        *details_of(reader, _OF_MODEL, model=model),
    ]
    name = reader.models.get(model, model)
    subtitle = f"{name} · " if name != model else ""
    return Page(
        f"Model {model}", f"{subtitle}{len(rows):,} series", (), (), sections, footer, model_page(model),
        answer=_counts(rows), tone=_tone(rows),
    )  # fmt: skip


def device_of(reader: Reader, row: FarmDeviceRow, rows: Sequence[SeriesRow], footer: str) -> Page:
    """Return the page of a device: its facts, its nights, its series."""
    nights = reader.rows(DeviceNightRow, {"device": row.device})
    sections = [
        Section("facts", "What it is", [table_of([row])]),
        Section("series", "Series", [table_of(rows, without=("device",))] if rows else [Paragraph(_no_times(row))]),
        Section("nights", "Nights", [table_of(nights).shortened(60, "etfarm sql lists them in session_overview")]),
        *details_of(reader, _OF_DEVICE, device=row.device),
    ]
    return Page(
        f"Device {row.device}", ("newest night: ", Link(str(row.night), night_page(row.night))), (), (), sections,
        footer, device_page(row.device), answer=_counts(rows) if rows else _no_times(row), tone=_tone(rows),
    )  # fmt: skip


def _no_times(row: FarmDeviceRow) -> str:
    if row.without_times:
        return f"This device is {row.without_times}: its times mean nothing, are not shown and never ranked."
    return "No series of this device was judged yet."


def _counts(rows: Sequence[SeriesRow]) -> str:
    """How many series have which newest verdict."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return f"{len(rows):,} series: {', '.join(f'{count:,} {verdict}' for verdict, count in counts.items())}."


def _tone(rows: Sequence[SeriesRow]) -> Tone:
    return "bad" if any(row.verdict in ("regression", "inaccurate") for row in rows) else ""


def sweep_of(answers: Answers, footer: str) -> Page:
    """Return the page of a sweep: its report; of more cells than can be read, what is not about single cells."""
    every = [section.__name__ for section in SECTIONS]
    cells = answers.sweep.devices * answers.sweep.models
    anchors = every if cells <= _MOST_CELLS else _OF_LARGE_SWEEP
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
