"""The columns of the lists of models and devices: the worst series of each, and how many series have each verdict."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Literal

from tasks.judge.figures import LATENCY, signed_interval, signed_percent
from tasks.pages.sections.incidents import titles_with_changes
from tasks.results.glances.histories import read_histories
from tasks.results.glances.incident_cards import limit_to_series, read_open_cards
from tasks.results.reader import Reader
from tasks.results.series import NightRow, SeriesRow, worst_series_first
from tasks.results.table import NOTHING, Cell, Column
from tasks.results.text import Link, sentence_digits, series_conditions, word_tone

COLUMNS = (
    Column(
        "Worst series",
        meaning="of its newest night, by verdict and then by change; the next four columns are about it",
        wraps=True,
    ),
    Column("Time", "ms", numeric=True),
    Column("30 nights"),
    Column("Change", "%, 95 % interval", numeric=True, wraps=True),
    Column("Verdict", wraps=True),
    Column("Open incidents", meaning="of any figure, also others than the time", wraps=True),
    Column("Series", meaning="by their verdict in the newest night", wraps=True),
)
WITHOUT = (NOTHING,) * len(COLUMNS)
"""The cells of a model or device without a series."""
_MAX_INCIDENTS = 2
Subject = Literal["model", "device"]


def worst_first(
    reader: Reader, groups: Mapping[str, Sequence[SeriesRow]], subject: Subject
) -> dict[str, Sequence[Cell]]:
    """Return the cells of each model or device with series, the worst first; one query reads all histories."""
    worst = {name: worst_series_first(series)[0] for name, series in groups.items()}
    newest = [row.night for row in reader.rows(NightRow)[:1]]
    rows = read_histories(reader, [_figure(row) for row in worst.values()], newest)
    histories = {figure: tuple(row.figures) for (figure, _), row in rows.items()}
    names = {id(row): name for name, row in worst.items()}
    ordered = [names[id(row)] for row in worst_series_first([*worst.values()])]
    cells: dict[str, Sequence[Cell]] = {}
    for name in ordered:
        row = worst[name]
        night = f", {row.night}" if row.night not in newest else ""
        cards = limit_to_series(read_open_cards(reader), groups[name])
        incidents = Cell(titles_with_changes(cards, _MAX_INCIDENTS), sort=len(cards)) if cards else NOTHING
        about = _cells(row, histories.get(_figure(row), ()), subject, night)
        cells[name] = [*about, incidents, _counts(groups[name], newest)]
    return cells


def _figure(row: SeriesRow) -> tuple[str, str, str]:
    return row.series_id, row.device, LATENCY.name


def _cells(row: SeriesRow, history: tuple[float | None, ...], subject: Subject, night: str) -> list[Cell]:
    """Return the cells about a series; `night` is written after a verdict that is not of the newest night."""
    where = f"{row.precision} on {row.device}" if subject == "model" else f"{row.model} {row.precision}"
    change = NOTHING
    if row.ratio is not None:
        interval = f" ({signed_interval(row.low, row.high)})" if row.low and row.high else ""
        change = Cell(f"{signed_percent(row.ratio, row.low, row.high)}{interval}", sort=row.ratio)
    time = row.time_ms
    since = f" since {row.since}" if row.since else ""
    return [
        Cell((Link(", ".join([where, *series_conditions(row)]), row.page),)),
        NOTHING if time is None else Cell(f"{time:,.{sentence_digits(time)}f}", sort=time),
        Cell("", line=history),
        change,
        Cell(f"{row.verdict}{since}{night}", sort=row.rank, tone=word_tone(row.verdict)),
    ]


def _counts(rows: Sequence[SeriesRow], newest: Collection[date]) -> Cell:
    """Return the number of series by verdict, the worst first: `2 regression, 14 no change, 1 not measured`."""
    counts: dict[str, int] = {}
    every = sorted((row for row in rows if row.night in newest), key=lambda row: row.rank)
    for row in every:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    if len(rows) > len(every):
        counts["not measured"] = len(rows) - len(every)
    return Cell(", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()), sort=len(every))
