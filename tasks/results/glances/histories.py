"""The values of figures over the last nights, for small charts beside them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date

from tasks.results.reader import Reader
from tasks.results.table import Row

Figure = tuple[str, str, str]
"""Series, device and metric."""


@dataclass(frozen=True)
class HistoryRow(Row):
    """The values of a figure over the 30 nights up to a night, in the unit of its metric."""

    query = "figure_histories"
    series_id: str
    device: str
    metric: str
    until: date
    nights: list[date]
    """The oldest first."""
    figures: list[float | None]
    """One for each of these nights; None without a value."""


def read_histories(
    reader: Reader, figures: Iterable[Figure], nights: Collection[date]
) -> dict[tuple[Figure, date], HistoryRow]:
    """Return the history of each figure up to each of some nights; one query reads all."""
    requested = [*figures]
    if not requested or not nights:
        return {}
    series, devices, metrics = (list(names) for names in zip(*requested, strict=True))
    parameters = {"series": series, "devices": devices, "metrics": metrics, "nights": [*nights]}
    rows = reader.rows(HistoryRow, parameters)
    return {((row.series_id, row.device, row.metric), row.until): row for row in rows}
